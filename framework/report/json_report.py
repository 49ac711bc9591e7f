"""The document of a judged run, `golden.run/1`, and of an offline check, `golden.check/1`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from framework.explain.drift import Drift
    from framework.run.session import Report

RUN_SCHEMA = "golden.run/1"
CHECK_SCHEMA = "golden.check/1"


def report_document(report: Report, schema: str) -> dict[str, Any]:
    """Return a report as the one document a machine reads."""
    document = run_document([outcome.as_json() for outcome in report.outcomes], report.drift, report.exit_code, schema)
    return document | ({"unmet": report.unmet} if report.unmet else {})


def run_document(
    entries: Sequence[dict[str, Any]],
    drift: Iterable[Drift],
    exit_code: ExitCode,
    schema: str,
) -> dict[str, Any]:
    """Return the document for fixture entries that are JSON already."""
    return {
        "schema": schema,
        "verdict": "PASS" if exit_code is ExitCode.GOOD else "FAIL",
        "exit_code": int(exit_code),
        "fixtures": list(entries),
        "settings_drift": [each.as_json() for each in drift],
    }
