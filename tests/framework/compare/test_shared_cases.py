from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from framework.compare.compare import compare_records
from framework.compare.rules import parse_rules
from framework.errors import ManifestError

# A checkout may lie beside cases that other implementations are judged by too.
CASES = Path(__file__).resolve().parents[4] / "shared" / "cases" / "compare.json"


def cases() -> list[Any]:
    if not CASES.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason="there is no shared/ beside this checkout"), id="none")]
    return [pytest.param(case, id=case["id"]) for case in json.loads(CASES.read_text("utf-8"))]


@pytest.mark.parametrize("case", cases())
def test_a_shared_case_gets_its_verdict(case: dict[str, Any]) -> None:
    if case["exit"] == 10:
        with pytest.raises(ManifestError):
            parse_rules(case["rules"])
        return
    comparison = compare_records(case["golden"], case["current"], parse_rules(case["rules"]))
    found = sorted([finding.kind.value, finding.path] for finding in comparison.findings)
    assert found == sorted(case["findings"])
    assert case["exit"] == (1 if found else 0)
