"""What of the environment reaches an engine, and what of its secrets reaches a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.errors import UsageError
from framework.run.engine_environment import checked_patterns, engine_environment
from framework.workspace import open_workspace
from tests.framework.toy_root import CONFIGURATION, ToyRoot, make_toy_root

TELLING = '''
import json, os, sys
from pathlib import Path
from toy_adapter import ToyEngine

class Telling(ToyEngine):
    """Writes down the environment it was given, and prints what it should not."""

    def run(self, fixture, **rest):
        Path(__file__).with_name("environment.json").write_text(json.dumps(dict(os.environ)))
        print("connecting to https://user:letmein@host/ with", os.environ.get("MODEL_TOKEN"))
        if os.environ.get("TOY_DIE"):
            raise RuntimeError(f"refused: {os.environ.get('MODEL_TOKEN')}")
        return super().run(fixture, **rest)
'''

NOT_FOR_ENGINES = {"GITHUB_TOKEN": "ghp_0123456789", "TOY_SECRET": "toy secret value"}


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    (root.path / "telling.py").write_text(TELLING)
    (root.path / "pyproject.toml").write_text(CONFIGURATION.replace("toy_adapter:ToyEngine", "telling:Telling"))
    root.write("first")
    return root


def given(toy: ToyRoot) -> dict[str, str]:
    environment = json.loads((toy.path / "environment.json").read_text())
    assert isinstance(environment, dict)
    return environment


def test_an_engine_gets_what_is_listed_and_nothing_else(toy: ToyRoot) -> None:
    toy.regen()
    done = toy.golden(
        "run",
        OMP_NUM_THREADS="1",
        CUDA_VISIBLE_DEVICES="0",
        LC_ALL="C.UTF-8",
        TOY_MACHINE="one",
        **NOT_FOR_ENGINES,
        SOMETHING="else",
        CI_JOB="7",
        LD_PRELOAD_NOT="x",
    )
    assert done.returncode == 0, done.stdout
    environment = given(toy)
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment["CUDA_VISIBLE_DEVICES"] == "0"
    assert environment["LC_ALL"] == "C.UTF-8"
    assert environment["TOY_MACHINE"] == "one"
    assert environment.keys().isdisjoint({*NOT_FOR_ENGINES, "SOMETHING", "CI_JOB", "LD_PRELOAD_NOT"})


def test_a_secret_is_passed_only_when_whoever_starts_the_run_names_it_and_is_never_shown(toy: ToyRoot) -> None:
    variables = {"MODEL_TOKEN": "mt-0123456789", "GOLDEN_ENGINE_ENVIRONMENT": "MODEL_TOKEN, UNSET", "TOY_DIE": "1"}
    toy.regen()
    done = toy.golden("run", "--junit", "junit.xml", **variables)
    assert done.returncode == 11
    assert given(toy)["MODEL_TOKEN"] == variables["MODEL_TOKEN"]
    as_json = toy.golden("run", "--json", **variables)
    kept = [path.read_text() for path in (toy.path / ".golden").rglob("*.json")]
    for shown in (done.stdout, done.stderr, as_json.stdout, (toy.path / "junit.xml").read_text(), *kept):
        assert "mt-0123456789" not in shown
        assert "letmein" not in shown
    assert "refused: [redacted]" in done.stdout
    assert "https://[redacted]@host/" in done.stdout


def test_a_golden_never_holds_a_secret(toy: ToyRoot) -> None:
    done = toy.golden("regen", "--reason", "because of sk-0123456789", "--yes", OPENAI_API_KEY="sk-0123456789")
    assert done.returncode == 12
    assert "named like a secret" in done.stderr
    assert "sk-0123456789" not in done.stdout + done.stderr
    assert not toy.golden_path("first").exists()


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "*", "A B", "1A", "", "A*B", "MY_*KEY", "A\n", "TOKEN*"])
def test_a_configuration_can_neither_name_a_secret_nor_everything(toy: ToyRoot, name: str) -> None:
    (toy.path / "pyproject.toml").write_text(f"[tool.golden]\nengine_environment = [{json.dumps(name)}]\n")
    with pytest.raises(UsageError, match="engine_environment"):
        open_workspace(toy.path, None)


@pytest.mark.parametrize("value", ["3", '"TOY_MACHINE"', "[3]", "{}", "[[]]"])
def test_a_configuration_of_another_type_is_refused(toy: ToyRoot, value: str) -> None:
    (toy.path / "pyproject.toml").write_text(f"[tool.golden]\nengine_environment = {value}\n")
    with pytest.raises(UsageError, match="expected a list of names"):
        open_workspace(toy.path, None)


def test_a_beginning_never_lets_a_secret_through() -> None:
    patterns = checked_patterns(["MY_*"], "x")
    environment = {"MY_MODE": "a", "MY_TOKEN": "b", "CUDA_API_KEY": "c", "PYTHON_SECRET": "d"}
    assert engine_environment(environment, patterns) == {"MY_MODE": "a"}


def test_a_grant_names_variables_in_full() -> None:
    environment = {"MY_TOKEN": "b", "MY_OTHER": "c", "GOLDEN_ENGINE_ENVIRONMENT": "MY_*"}
    assert engine_environment(environment) == {}
