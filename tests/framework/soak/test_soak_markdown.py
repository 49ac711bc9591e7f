from __future__ import annotations

import re

from framework.compare.finding import Finding, FindingClass
from framework.errors import ExitCode
from framework.judge import Outcome, Verdict
from framework.soak.markdown import markdown_report
from framework.soak.soak_run import SoakRun
from framework.soak.summary import FixtureSoak

ENVIRONMENT = {"torch": "2.13.0", "cpu": "A | B", "libraries": {"mkl": "1", "onednn": "2"}, "variables": {}}


def run(number: int, *, failing: str = "", kinds: tuple[str, ...] = (), date: str = "2026-01-02") -> SoakRun:
    return SoakRun(
        number=number,
        kinds=kinds,
        exit_code=ExitCode.REGRESSION if failing else ExitCode.GOOD,
        compared=1000,
        seconds=0.5,
        date=date,
        deviations={"generated_logprobs": 2.5e-6 * number},
        findings=({"class": "TEXT", "path": 'requests["0"].generated_text', "message": failing},) if failing else (),
        finding_count=7 if failing else 0,
    )


def soak(*runs: SoakRun, name: str = "folder/a", **environment: str) -> FixtureSoak:
    rules = {"generated_logprobs": "atol 1e-05, rtol 0.0"}
    return FixtureSoak(name, "cpu", len(runs), runs, rules, ENVIRONMENT | environment, engine="sources 12ab")


GOOD = (run(0), run(1, kinds=("num_threads 2",)), run(2, kinds=("num_threads 3", "arrivals shuffled")))


def test_a_clean_soak_says_when_where_and_what_was_varied() -> None:
    report = markdown_report([soak(*GOOD), soak(*GOOD[:2], name="b", dtype="other", torch="2.12")])
    assert report.startswith("# Soak report\n\n**No false alarm**: 5 runs of 2 fixtures, 5,000 values compared.\n")
    assert "\n- date: 2026-01-02\n- engine: sources 12ab\n- cpu: A \\| B\n- libraries: mkl 1, onednn 2\n\n" in report
    assert (
        "| folder/a | cpu | PASS | 3 | 2 | 0 | 3,000 | 0.50 | generated_logprobs 5e-06 (atol 1e-05, rtol 0.0) |"
        in report
    )
    assert "| runs with | as written | arrivals shuffled | num_threads 2 | num_threads 3 |" in report
    assert "| folder/a | 1 | 1 | 1 | 1 |" in report
    assert "| b | 1 | 0 | 1 | 0 |" in report
    assert report.endswith(" |\n")


def test_every_table_has_one_number_of_columns() -> None:
    report = markdown_report([soak(*GOOD), soak(*GOOD[:2], name="b")])
    for table in re.findall(r"(?:^\|.*\n)+", report, re.MULTILINE):
        widths = {len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}
        assert len(widths) == 1


def test_the_same_runs_give_the_same_bytes() -> None:
    assert markdown_report([soak(*GOOD)]) == markdown_report([soak(*GOOD)])


def test_runs_of_several_days_name_both_ends() -> None:
    report = markdown_report([soak(run(0, date="2026-01-02"), run(1, kinds=("x",), date="2026-02-01"))])
    assert "- dates: 2026-01-02 to 2026-02-01\n" in report


def test_a_failed_run_is_shown_with_the_command_that_does_it_again_and_without_folders() -> None:
    hostile = "golden `a|b` <script> at /home/somebody/secret/engine/loop.py:12, in f\nmore"
    report = markdown_report([soak(*GOOD, run(3, failing=hostile, kinds=("num_threads 4",)))])
    assert "**Not clean**: 4 runs of 1 fixture, 4,000 values compared; runs that failed: 1." in report
    assert "## folder/a: FAIL" in report
    assert "- run 3 (num_threads 4), again: `golden soak folder/a --only 3`" in report
    assert "golden \\`a\\|b\\` \\<script\\> at loop.py:12, in f\n" in report
    assert "and 6 more findings" in report
    assert "secret" not in report
    assert "more\n" not in report.replace("more findings", "")


def test_many_failed_runs_are_bounded() -> None:
    runs = [run(number, failing="x", kinds=("y",)) for number in range(25)]
    report = markdown_report([soak(*runs)])
    assert report.count("again:") == 20
    assert "- and 5 more failed runs" in report


def test_a_fixture_that_could_not_be_run_says_why() -> None:
    finding = Finding(FindingClass.STRUCTURE, "golden", "golden", "/a/b/goldens/c.json: there is no golden yet")
    outcome = Outcome("c", Verdict.MISSING, ExitCode.GOLDEN, (finding,))
    report = markdown_report([soak(*GOOD), FixtureSoak.refused_by(outcome)])
    assert "**Not clean**: 3 runs of 1 fixture," in report
    assert "## c: MISSING\n\n- STRUCTURE golden: c.json: there is no golden yet\n" in report


def test_a_soak_that_proves_nothing_says_so() -> None:
    assert "## folder/a: FAIL\n\nno run was varied" in markdown_report([soak(run(0))])
