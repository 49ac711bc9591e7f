# `make run` and `make test` need Python 3.11 or newer and nothing else: they make .venv and install into it.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off --constraint constraints.txt

.PHONY: run test lint models goldens clean
.DEFAULT_GOAL := run

run: $(VENV)/.installed-run  ## run every CPU fixture against its golden
	@$(BIN)/golden run

test: $(VENV)/.installed-test  ## run the tests
	@$(BIN)/python -m pytest -n auto --dist worksteal
	@echo "Tests passed. Next: 'make lint' before a commit; 'make run' judges the shipped fixtures."

lint: $(VENV)/.installed-lint  ## ruff, mypy, the lint of the manifests and of the workflows
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/golden lint
	@$(BIN)/zizmor --offline --no-progress --quiet --min-severity medium .github
	@echo "Lint is clean."

models: $(VENV)/.installed-models  ## fetch the models that are too large for the repository; fixtures of theirs are skipped without
	@$(BIN)/golden models fetch

goldens: $(VENV)/.installed-run  ## prove and record goldens anew: make goldens REASON="why they change" [FIXTURES="a b"]
	@test -n "$(REASON)" || { echo 'say why: make goldens REASON="why these goldens change"'; exit 2; }
	@$(BIN)/golden regen $(FIXTURES) --reason "$(REASON)"

clean:  ## remove the virtual environment
	rm -rf $(VENV)

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; name one: make PYTHON=/path/to/python3.11")'
	@echo "Making a virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-run: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing (CPU torch is about 200 MB; a minute or two, once)"
	@$(PIP) --quiet --editable .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed-run
	@echo "Installing what the tests need"
	@$(PIP) --quiet --editable '.[test]'
	@touch $@

$(VENV)/.installed-models: $(VENV)/.installed-run
	@echo "Installing what fetching models needs"
	@$(PIP) --quiet --editable '.[models]'
	@touch $@

$(VENV)/.installed-lint: $(VENV)/.installed-test
	@echo "Installing what lint needs"
	@$(PIP) --quiet --editable '.[test,lint]'
	@touch $@
