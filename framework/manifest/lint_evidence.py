"""Lint rules that hold tolerances against what was observed when the goldens in force were recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from framework.compare.rule import RuleKind
from framework.errors import GoldenError
from framework.golden.codec import read_bytes
from framework.golden.store import golden_path, leads_out, parse_golden
from framework.manifest.fixture import Fixture
from framework.manifest.linted import Linted, LintProblem, LintRule, Severity
from framework.regenerate.evidence import evidence_of
from framework.regenerate.tolerances import tolerance_problems, tolerance_warnings

_SPREAD: Final = re.compile(rb'"spread": (\{[^{}]*\})')


def _tolerances_against_evidence(linted: Linted) -> Iterator[LintProblem]:
    """A tolerance that good runs exceed is wrong, whatever was recorded; one far above them lets errors pass.

    Goldens that cannot be read, lie elsewhere, or carry no evidence, are for other rules and `golden check`.
    """
    for fixture in linted.fixtures:
        if any(rule.kind is RuleKind.NUMERIC for rule in fixture.rules.asserted.values()):
            for platform in fixture.platforms:
                yield from _against(linted, fixture, platform)


def _against(linted: Linted, fixture: Fixture, platform: str) -> Iterator[LintProblem]:
    path = golden_path(linted.goldens_root, fixture.name, platform)
    if leads_out(path, linted.goldens_root):
        return
    try:
        data = read_bytes(path)
        if not _may_disagree(fixture, data):
            return
        golden = parse_golden(data, path)
        spread = evidence_of(golden.document["provenance"]).spread
    except (GoldenError, ValueError, RecursionError):
        return
    for name, message in tolerance_problems(fixture.rules, spread, golden.document).items():
        way_out = "Write a tolerance above it, or find out why runs differ"
        yield linted.problem(fixture, f"assert.{name}", f"{message} for {platform}", way_out)
    for name, message in tolerance_warnings(fixture.rules, spread).items():
        way_out = "Write one nearer to what was observed"
        yield linted.problem(fixture, f"assert.{name}", f"{message} for {platform}", way_out, Severity.WARNING)


def _may_disagree(fixture: Fixture, data: bytes) -> bool:
    """Say whether a golden is worth reading as a whole: most are not, and lint looks at thousands.

    The spread alone is enough to tell that a tolerance is well above it and not far above it.
    """
    recorded = _SPREAD.search(data)
    if recorded is None:
        return False
    figures = {"runs": 0, "spread": json.loads(recorded[1]), "instruction_set_error": None}
    spread = evidence_of({"proof": figures}).spread
    return bool(
        tolerance_problems(fixture.rules, spread, {"requests": {}}) or tolerance_warnings(fixture.rules, spread)
    )


RULES: Final[tuple[LintRule, ...]] = (_tolerances_against_evidence,)
