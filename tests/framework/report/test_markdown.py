from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from framework.compare.finding import Finding, FindingClass
from framework.errors import ExitCode
from framework.explain.drift import SHOWN_NAMES, Drift
from framework.judge import Outcome, Verdict
from framework.report.markdown import LARGEST, markdown_report
from framework.run.session import Report

WILD = st.text(st.characters(exclude_categories=()) | st.sampled_from("`|<>@#[]()!&:\\\n\x1b\u202e"), max_size=80)
DRIFT = Drift("mode", "legacy", "async", ("b",), ())
TAGS = re.compile(r"<details><summary>[a-z0-9, ]+</summary>\n|</details>\n")


def finding(message: str = "differs", path: str = "counters.x") -> Finding:
    return Finding(kind=FindingClass.COUNTER, path=path, rule="exact", message=message)


def failed(name: str, *findings: Finding) -> Outcome:
    return Outcome(name, Verdict.FAIL, ExitCode.REGRESSION, findings or (finding(),), 5)


def passed(name: str) -> Outcome:
    return Outcome(name, Verdict.PASS, ExitCode.GOOD, compared=1_234)


def tokens(text: str) -> list[Token]:
    found = MarkdownIt("commonmark").enable("table").parse(text)
    return [token for block in found for token in (block, *(block.children or ()))]


def left_out(text: str, what: str) -> int:
    found = re.search(rf"(\d+) {what}", text)
    return int(found[1]) if found else 0


def test_the_verdict_comes_first_then_changed_defaults_then_the_worst() -> None:
    crashed = Outcome("z", Verdict.ERROR, ExitCode.ENGINE, (finding("gone"),))
    text = markdown_report(Report((passed("a"), failed("b"), crashed), (DRIFT,)))
    assert text.startswith("## Golden values: FAIL (exit code 11)\n\n1 PASS, 1 FAIL, 1 ERROR; 1239 values compared")
    parts = ("Default changed", "| `z` |", "| `b` |", "### ERROR `z`", "### FAIL `b`", "1 passed", "1,234")
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "Left out" not in text


def test_findings_stand_with_their_values_and_what_to_do_next() -> None:
    text = markdown_report(Report((failed("b", finding("golden 30, current 0")),), ()))
    assert "  COUNTER counters.x [exact]: golden 30, current 0\n  next: the schedule moved" in text


def test_all_good_is_one_line_and_a_folded_table() -> None:
    skipped = Outcome("s", Verdict.SKIP, ExitCode.NOTHING_SELECTED, reason="elsewhere")
    text = markdown_report(Report((passed("a"), passed("b"), skipped), ()))
    assert text.startswith("## Golden values: PASS\n")
    assert "<details><summary>2 passed, 1 skipped</summary>" in text
    assert text.count("<details>") == text.count("</details>") == 1


def test_what_does_not_fit_is_counted_and_the_table_leaves_room_for_findings() -> None:
    outcomes = tuple(failed(f"f{number:04}", finding("y" * 3_000)) for number in range(4_000))
    text = markdown_report(Report((*outcomes, *(passed(f"p{number}") for number in range(70))), ()))
    assert len(text.encode()) <= LARGEST
    rows, sections = text.count("| `f"), text.count("\n### ")
    assert rows > 100
    assert sections > 20
    assert left_out(text, "fixtures that did not pass, in the table") == 4_000 - rows
    assert left_out(text, "fixtures with findings") == 4_000 - sections
    assert left_out(text, "fixtures that passed or were skipped") == 70 - text.count("| `p")


def test_a_changed_default_that_reaches_thousands_is_said_all_the_same() -> None:
    many = tuple(f"{'deep/' * 8}f{number:05}" for number in range(10_000))
    text = markdown_report(Report((), (Drift("mode", "legacy", "async", many, many),)))
    assert "10000 fixtures inherit it" in text
    assert text.count(f" and {10_000 - SHOWN_NAMES} more") == 2


def test_a_long_list_of_findings_keeps_what_is_missing_and_what_is_next() -> None:
    stack = "\n".join(f"    | frame {number} {'x' * 390}" for number in range(60))
    text = markdown_report(Report((failed("a", *(finding(stack) for _ in range(20))),), ()))
    assert re.search(r"… \d+ lines are left out", text)
    assert "  and 12 more; `--json` has them all\n  next: the schedule moved" in text


@settings(max_examples=60)
@given(
    st.lists(st.tuples(WILD, st.sampled_from(list(Verdict)), WILD, WILD), max_size=40),
    st.integers(2_000, 20_000),
)
def test_no_text_whatever_makes_it_larger_or_becomes_markup(
    entries: list[tuple[str, Verdict, str, str]],
    largest: int,
) -> None:
    outcomes = tuple(
        Outcome(name, verdict, ExitCode.REGRESSION, (finding(message * 9, path),), reason=message)
        for name, verdict, message, path in entries
    )
    drift = tuple(Drift(name, message, path, (name,) * 30, (path,)) for name, _, message, path in entries[:3])
    text = markdown_report(Report(outcomes, drift), largest=largest)
    assert len(text.encode()) <= largest
    found = tokens(text)
    assert not {"link_open", "image", "em_open", "html_inline", "blockquote_open", "hr"} & {t.type for t in found}
    assert all(TAGS.fullmatch(token.content) for token in found if token.type == "html_block")
    rows = sum(token.type == "tr_open" for token in found) - sum(token.type == "thead_open" for token in found)
    missing = left_out(text, "fixtures that did not pass, in the table")
    missing += left_out(text, "fixtures that passed or were skipped")
    assert rows + missing == len(outcomes)
    bad = sum(outcome.verdict not in (Verdict.PASS, Verdict.SKIP) for outcome in outcomes)
    sections = sum(token.type == "heading_open" and token.tag == "h3" for token in found)
    assert sections + left_out(text, "fixtures with findings") == bad
    changed = sum(token.type == "strong_open" for token in found)
    assert changed + left_out(text, "changed defaults") == len(drift)


@pytest.mark.parametrize(
    "name", ["@team", "#1", "[x](javascript:1)", "<script>", "https://evil.example", "a@b.example"]
)
def test_a_name_stands_in_code_only(name: str) -> None:
    text = markdown_report(Report((failed(name, finding(name, name)),), ()))
    outside = [token.content for token in tokens(text) if token.type in ("text", "html_block", "html_inline")]
    assert not any(name in content for content in outside)
    assert any(token.type == "code_inline" and token.content == name for token in tokens(text))
