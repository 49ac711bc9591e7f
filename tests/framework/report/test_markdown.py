from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.compare.finding import Finding, FindingClass
from framework.errors import ExitCode
from framework.explain.drift import Drift
from framework.judge import Outcome, Verdict
from framework.report.markdown import LARGEST, markdown_report
from framework.run.session import Report

WILD = st.text(st.characters(exclude_categories=()), max_size=80)
DRIFT = Drift("mode", "legacy", "async", ("b",), ())


def finding(message: str = "differs", path: str = "counters.x") -> Finding:
    return Finding(kind=FindingClass.COUNTER, path=path, rule="exact", message=message)


def failed(name: str, *findings: Finding) -> Outcome:
    return Outcome(name, Verdict.FAIL, ExitCode.REGRESSION, findings or (finding(),), 5)


def passed(name: str) -> Outcome:
    return Outcome(name, Verdict.PASS, ExitCode.GOOD, compared=1_234)


def test_the_verdict_comes_first_then_changed_defaults_then_the_worst() -> None:
    crashed = Outcome("z", Verdict.ERROR, ExitCode.ENGINE, (finding("gone"),))
    text = markdown_report(Report((passed("a"), failed("b"), crashed), (DRIFT,)))
    assert text.startswith("## Golden values: FAIL (exit code 11)\n")
    places = [text.index(part) for part in ("Default changed", "<code>z</code>", "<code>b</code>", "1 passed", "1,234")]
    assert places == sorted(places)
    assert "Left out" not in text


def test_all_good_is_one_line_and_a_folded_table() -> None:
    text = markdown_report(Report((passed("a"), passed("b")), ()))
    assert text.startswith("## Golden values: PASS\n")
    assert text.count("<details>") == text.count("</details>") == 1


def test_what_does_not_fit_is_counted() -> None:
    outcomes = tuple(failed(f"f{number:04}", finding("y" * 3_000)) for number in range(400))
    text = markdown_report(Report((*outcomes, passed("good")), ()))
    assert len(text.encode()) <= LARGEST
    shown = text.count("<details><summary><code>f")
    assert f"{400 - shown} fixtures with findings" in text
    assert shown > 5


@given(
    st.lists(st.tuples(WILD, st.sampled_from(list(Verdict)), WILD, WILD), max_size=40),
    st.integers(2_000, 20_000),
)
def test_no_text_whatever_makes_it_larger_or_unbalanced(
    entries: list[tuple[str, Verdict, str, str]], largest: int
) -> None:
    outcomes = tuple(
        Outcome(name, verdict, ExitCode.REGRESSION, (finding(message * 9, path),), reason=message)
        for name, verdict, message, path in entries
        if verdict is not Verdict.QUARANTINED
    )
    text = markdown_report(Report(outcomes, (DRIFT,)), largest=largest)
    assert len(text.encode("utf-8")) <= largest
    assert text.count("<details>") == text.count("</details>")
    assert text.count("<code>") == text.count("</code>")
    assert "\x1b" not in text


@pytest.mark.parametrize("name", ["a|b", "@team", "#1", "[x](javascript:1)", "<script>", "`", "https://evil.example"])
def test_a_name_is_never_markup(name: str) -> None:
    assert name not in markdown_report(Report((failed(name, finding(name, name)),), ()))
