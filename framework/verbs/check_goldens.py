"""`golden check`: everything that can be said of goldens without an engine."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from framework.compare.finding import FindingClass
from framework.explain.words import counted
from framework.golden.store import Golden
from framework.judge import Outcome, Verdict, judge_golden_alone, skipped_outcome
from framework.report.json_report import CHECK_SCHEMA, report_document
from framework.report.streams import print_json
from framework.report.terminal import print_report
from framework.report.text import summary_line
from framework.run.session import readable_golden, report_on
from framework.verbs.lint_manifests import refuse_broken_manifests
from framework.verbs.opened import Opened, open_selection
from framework.verbs.quarantined import quarantine_in_force

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from framework.errors import ExitCode
    from framework.manifest.fixture import Fixture
    from framework.run.session import Report


def run(arguments: argparse.Namespace) -> ExitCode:
    """Check the goldens of what was selected, on every platform each fixture names unless one is asked for.

    A quarantine excuses what an engine does, so nothing here; a broken one is refused all the same.
    """
    opened = open_selection(arguments)
    refuse_broken_manifests(opened)
    quarantine_in_force(opened.workspace, opened.fixtures.values())
    outcomes = tuple(
        outcome
        for fixture in opened.selected
        for outcome in _check(opened, fixture, [arguments.platform] if arguments.platform else fixture.platforms)
    )
    report = report_on(outcomes, opened.fixtures.values())
    checked = _checked(report, opened.fixtures)
    if arguments.json:
        print_json(report_document(report, CHECK_SCHEMA) | {"checked": checked})
    else:
        verdicts = summary_line(report).partition(";")[0]
        print_report(
            report,
            opened.fixtures,
            summary=f"{verdicts}; {_in_words(checked)}",
        )
    return report.exit_code


def _checked(report: Report, fixtures: Mapping[str, Fixture]) -> dict[str, int]:
    """Return how many goldens could be believed, how many relations they have to others, and how many of these hold."""
    believed = [outcome for outcome in report.outcomes if outcome.verdict in (Verdict.PASS, Verdict.FAIL)]
    relations = sum(len(fixtures[outcome.fixture].relations) for outcome in believed)
    broken = sum(len(_broken_relations(outcome)) for outcome in believed)
    return {"goldens": len(believed), "relations": relations, "relations_held": relations - broken}


def _broken_relations(outcome: Outcome) -> set[str]:
    """Return the relations that have a finding: its rule is their name, with or without a `with`."""
    rules = [finding.rule for finding in outcome.findings if finding.kind is FindingClass.RELATION]
    return {rule.replace(" with ", " ") for rule in rules}


def _in_words(checked: Mapping[str, int]) -> str:
    held, relations = checked["relations_held"], checked["relations"]
    related = f"{counted(held, 'relation')} hold{'s' * (held == 1)}"
    if held < relations:
        related = f"of {counted(relations, 'relation')} between them {held} hold{'s' * (held == 1)}"
    return f"{counted(checked['goldens'], 'golden')} read, sealed and current; {related}."


def _check(opened: Opened, fixture: Fixture, platforms: list[str] | tuple[str, ...]) -> list[Outcome]:
    outcomes = []
    for platform in platforms:
        if platform not in fixture.platforms:
            outcomes.append(skipped_outcome(fixture, f"it is for {', '.join(fixture.platforms)}, not {platform}"))
            continue
        outcome = _check_one(opened, fixture, platform)
        if len(fixture.platforms) > 1:
            outcome = dataclasses.replace(outcome, reason=": ".join(filter(None, (f"on {platform}", outcome.reason))))
        outcomes.append(outcome)
    return outcomes


def _check_one(opened: Opened, fixture: Fixture, platform: str) -> Outcome:
    """Check one golden; where its model has to be fetched first, what holds without it is no more than skipped."""
    golden = _golden(opened, fixture, platform)
    if isinstance(golden, Golden):
        partners = _partners(opened, fixture, platform)
        outcome = judge_golden_alone(fixture, golden, opened.adapter.describe(), partners)
    else:
        outcome = golden
    why = opened.workspace.why_not_fetched(fixture)
    return skipped_outcome(fixture, why) if why and outcome.verdict in (Verdict.PASS, Verdict.MISSING) else outcome


def _golden(opened: Opened, fixture: Fixture, platform: str) -> Golden | Outcome:
    here = not opened.workspace.why_not_fetched(fixture)
    hashes = opened.adapter.model_hashes(opened.workspace.model_path(fixture)) if here else None
    return readable_golden(opened.workspace, fixture, platform, hashes)


def _partners(opened: Opened, fixture: Fixture, platform: str) -> Mapping[str, Mapping[str, object]]:
    partners = {}
    for relation in fixture.relations:
        other = opened.fixtures.get(relation.other)
        if other is not None and platform in other.platforms:
            golden = _golden(opened, other, platform)
            if isinstance(golden, Golden):
                partners[relation.other] = golden.document
    return partners
