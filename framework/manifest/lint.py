"""What is wrong with fixtures beyond their form: settings, models, relations, goldens, and tests that prove nothing.

Everything here is found before any engine starts. Each rule is a function from what is linted to its problems.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from framework.manifest import lint_engine, lint_evidence, lint_files, lint_proof, lint_witnesses
from framework.manifest.fixture import Fixture
from framework.manifest.linted import Linted, LintProblem
from framework.run.adapter import Adapter, ChecksFixtures, ChecksSampling, SettingDescription


def lint(
    fixtures: Sequence[Fixture],
    *,
    root: Path,
    settings: Mapping[str, SettingDescription],
    check_settings: Callable[[Mapping[str, Any]], None],
    check_sampling: Callable[[Mapping[str, Any]], None] | None = None,
    check_fixture: Callable[[Fixture], None] | None = None,
) -> tuple[LintProblem, ...]:
    """Return every problem of `fixtures`, sorted by file and line.

    `root` holds `fixtures/` and `goldens/`. `settings` describe what the engine knows; `check_settings` raises
    `ValueError` on pinned settings that it refuses to combine, `check_sampling` on sampling that it cannot do,
    `check_fixture` on files that settings name and it cannot use.
    Manifests that could not be loaded are not here: their errors come from loading.
    """
    linted = Linted(fixtures, root, settings, check_settings, check_sampling, check_fixture)
    rules = (*lint_engine.RULES, *lint_proof.RULES, *lint_witnesses.RULES, *lint_files.RULES, *lint_evidence.RULES)
    problems = {problem for rule in rules for problem in rule(linted)}
    return tuple(sorted(problems, key=lambda problem: (problem.file, problem.line, problem.path, problem.message)))


def lint_with(adapter: Adapter, fixtures: Sequence[Fixture], root: Path) -> tuple[LintProblem, ...]:
    """Return every problem of `fixtures`, with everything that the engine behind `adapter` can say of them."""
    return lint(
        fixtures,
        root=root,
        settings=adapter.describe(),
        check_settings=adapter.check_settings,
        check_sampling=adapter.check_sampling if isinstance(adapter, ChecksSampling) else None,
        check_fixture=adapter.check_fixture if isinstance(adapter, ChecksFixtures) else None,
    )
