from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest

from framework.compare.finding import Finding, FindingClass
from framework.errors import ExitCode
from framework.judge import Outcome, Verdict
from framework.quarantine.entry import Entry, Quarantine
from framework.quarantine.excuse import under_quarantine
from tests.framework.quarantine.entries import DAY, entry


def failed(*kinds: FindingClass, verdict: Verdict = Verdict.FAIL, code: ExitCode = ExitCode.REGRESSION) -> Outcome:
    findings = tuple(Finding(kind=kind, path="p", rule="r", message="m") for kind in kinds)
    return Outcome("first", verdict, code, findings)


def excused(outcome: Outcome, *entries: Entry, platform: str | None = "cpu") -> Outcome:
    return under_quarantine(outcome, Quarantine(entries or (entry(),)), platform, DAY)


def test_findings_of_the_declared_class_are_excused_and_kept() -> None:
    outcome = excused(failed(FindingClass.TOKEN, FindingClass.TOKEN))
    assert (outcome.verdict, outcome.exit_code) == (Verdict.QUARANTINED, ExitCode.GOOD)
    assert len(outcome.findings) == 2
    assert outcome.as_json()["quarantine"] == {
        "owner": "@ada",
        "issue": "#12",
        "class": ["TOKEN"],
        "platform": "cpu",
        "since": "2026-06-05",
        "expires": "2026-06-20",
        "days_left": 5,
        "excused": True,
        "why_not": "",
        "consecutive_passes": None,
    }


def test_one_finding_of_another_class_fails_as_ever() -> None:
    outcome = excused(failed(FindingClass.TOKEN, FindingClass.LOGPROB, FindingClass.COUNTER))
    assert (outcome.verdict, outcome.exit_code) == (Verdict.FAIL, ExitCode.REGRESSION)
    assert outcome.quarantine is not None
    assert outcome.quarantine.why_not == "not excused: COUNTER, LOGPROB are not what it declares"


def test_several_classes_may_be_declared() -> None:
    both = entry(classes=(FindingClass.TOKEN, FindingClass.LOGPROB))
    assert excused(failed(FindingClass.TOKEN, FindingClass.LOGPROB), both).verdict is Verdict.QUARANTINED


@pytest.mark.parametrize("kind", [FindingClass.ENGINE_CRASH, FindingClass.TIME_LIMIT, FindingClass.OUT_OF_MEMORY])
def test_an_engine_that_fails_can_be_declared(kind: FindingClass) -> None:
    crashed = failed(kind, verdict=Verdict.ERROR, code=ExitCode.ENGINE)
    assert excused(crashed).exit_code is ExitCode.ENGINE
    assert excused(crashed, entry(classes=(kind,))).verdict is Verdict.QUARANTINED


def test_a_flaky_fixture_is_excused_by_the_class_it_flakes_with() -> None:
    assert excused(failed(FindingClass.TOKEN, verdict=Verdict.FLAKY)).verdict is Verdict.QUARANTINED


@pytest.mark.parametrize("verdict", [Verdict.MISSING, Verdict.STALE, Verdict.ERROR])
def test_a_golden_that_cannot_be_relied_on_is_never_excused(verdict: Verdict) -> None:
    outcome = excused(failed(FindingClass.STRUCTURE, verdict=verdict, code=ExitCode.GOLDEN))
    every = entry(classes=tuple(FindingClass))
    assert excused(outcome, every).exit_code is ExitCode.GOLDEN


def test_a_failure_without_a_finding_is_never_excused() -> None:
    assert excused(failed()).verdict is Verdict.FAIL


@pytest.mark.parametrize(("platform", "fixture"), [("nvidia-h200", "first"), (None, "first"), ("cpu", "second")])
def test_another_fixture_or_platform_is_judged_as_ever(platform: str | None, fixture: str) -> None:
    outcome = dataclasses.replace(failed(FindingClass.TOKEN), fixture=fixture)
    assert excused(outcome, platform=platform) is outcome


@pytest.mark.parametrize(("since", "expires"), [(-10, -1), (1, 5)])
def test_an_entry_excuses_nothing_before_it_begins_and_after_it_ends(since: int, expires: int) -> None:
    days = {"since": DAY + timedelta(days=since), "expires": DAY + timedelta(days=expires)}
    outcome = excused(failed(FindingClass.TOKEN), entry(**days))
    assert outcome.verdict is Verdict.FAIL
    assert "does not hold on 2026-06-15" in outcome.as_json()["quarantine"]["why_not"]


def test_the_last_day_still_excuses() -> None:
    outcome = excused(failed(FindingClass.TOKEN), entry(expires=DAY))
    assert outcome.verdict is Verdict.QUARANTINED
    assert outcome.quarantine is not None
    assert "until 2026-06-15 (its last day); owner @ada, issue #12" in outcome.quarantine.in_words()


def test_a_pass_stays_a_pass_with_a_note() -> None:
    outcome = excused(Outcome("first", Verdict.PASS, ExitCode.GOOD, compared=3))
    assert (outcome.verdict, outcome.exit_code, outcome.compared) == (Verdict.PASS, ExitCode.GOOD, 3)
    assert outcome.quarantine is not None
    assert not outcome.quarantine.excused


def test_a_skipped_fixture_says_nothing_of_its_entry() -> None:
    outcome = Outcome("first", Verdict.SKIP, ExitCode.NOTHING_SELECTED, reason="no GPU")
    assert excused(outcome) is outcome
