from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.framework.toy_root import ToyRoot, make_toy_root

MORE = """\
relations: [{kind: async_equals_legacy, with: default}]
ignore: {margins: "the toy makes them up"}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("explain"))
    root.write("default")
    root.write("legacy", engine="async_sched_mode: legacy", more=MORE)
    root.regen()
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


def test_explain_shows_settings_golden_and_what_each_rule_judges(recorded: ToyRoot) -> None:
    lines = recorded.golden("explain", "legacy").stdout.splitlines()
    assert lines[0] == "legacy: the toy gives what it gave before"
    assert lines[2:7] == [
        "  pinned by the manifest:",
        '    async_sched_mode = "legacy" (default "async")',
        "  inherited from the engine's defaults:",
        "    num_threads = null",
        '    fault = "none"',
    ]
    assert "    reason: first recording" in lines
    assert "    recorded 20" in "\n".join(lines)
    assert any(
        line.startswith("    proof: ") and " runs; spread between them: none, bit for bit" in line for line in lines
    )
    assert "  asserted, 16 values in the golden (and prompt_tokens, always):" in lines
    assert "    generated_tokens: exact (6 values)" in lines
    assert "    generated_logprobs: atol 1e-05, rtol 0.0 (6 values)" in lines
    assert "    counters.*: exact (2 values)" in lines
    assert "  ignored: margins, because: the toy makes them up" in lines
    assert "  witness: counters.step_count > 0 (6 in the golden)" in lines
    assert "  relation: async_equals_legacy with default" in lines
    assert "  last verdict: none; `golden run` gives one" in lines


def test_the_values_that_rules_judge_are_those_that_a_run_compares(toy: ToyRoot) -> None:
    _, document = toy.json("run", "default")
    _, explained = toy.json("explain", "default")
    asserted = explained["fixtures"][0]["asserted"]
    assert sum(each["values"] for each in asserted.values()) == document["fixtures"][0]["compared"]


def test_what_drifted_comes_first_and_the_last_verdict_with_its_findings_last(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    toy.golden("run", "default")
    done = toy.golden("explain", "default")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[1].startswith(
        "  SETTINGS_DRIFT `async_sched_mode` default async → legacy since this golden was recorded"
    )
    assert '    async_sched_mode = "legacy"; the golden was recorded with "async"' in lines
    verdict = lines[lines.index("  last verdict: FAIL, 16 values compared") :]
    assert verdict[1].startswith("    SETTINGS_DRIFT settings.async_sched_mode: ")
    assert any(line.startswith("    COUNTER counters.async_sched_step_count: golden 6, current 0") for line in verdict)


def test_the_document_holds_all_of_it(toy: ToyRoot) -> None:
    toy.set_default_mode("legacy")
    code, document = toy.json("explain", "default")
    assert (code, document["schema"]) == (0, "golden.explain/1")
    (entry,) = document["fixtures"]
    assert entry["settings"]["async_sched_mode"] == {
        "value": "legacy",
        "source": "default",
        "default": "legacy",
        "golden": "async",
        "in_golden": True,
    }
    assert [finding["class"] for finding in entry["drift"]] == ["SETTINGS_DRIFT"]
    assert entry["provenance"]["reason"] == "first recording"
    assert entry["asserted"]["counters.*"] == {"rule": "exact", "values": 2}
    assert entry["witnesses"] == [{"witness": "counters.step_count > 0", "golden": 7}]
    assert entry["informed"] == ["environment", "margins", "performance", "settings"]
    assert entry["last_verdict"] is None


def test_a_stale_golden_still_says_where_it_comes_from(toy: ToyRoot) -> None:
    toy.write("default", prompts="another")
    done = toy.golden("explain", "default")
    assert done.returncode == 12
    assert "golden: none that can be used" in done.stdout
    assert "changed since this golden was recorded" in done.stdout
    assert "reason: first recording" in done.stdout


@pytest.mark.parametrize(
    ("damage", "words"),
    [("missing", "there is no golden yet"), ("broken", "golden unreadable"), ("stale", "changed since")],
)
def test_explain_says_why_a_golden_cannot_be_used(toy: ToyRoot, damage: str, words: str) -> None:
    if damage == "missing":
        toy.golden_path("default").unlink()
    elif damage == "broken":
        toy.golden_path("default").write_text("{")
    else:
        toy.write("default", prompts="another")
    done = toy.golden("explain", "default")
    assert done.returncode == 12
    assert words in done.stdout
    assert "default has no golden that can be used" in done.stderr


def test_a_fixture_of_another_machine_says_so(toy: ToyRoot) -> None:
    toy.write("gpu", more="platforms: [nvidia-h200]")
    done = toy.golden("explain", "gpu")
    assert done.returncode == 0
    assert "it is for nvidia-h200; this machine has cpu" in done.stdout


FINDING = {"class": "TOKEN", "path": "x", "message": "first\nsecond"}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"default": ' * 50_000,
        "[1]",
        "\0",
        json.dumps({"default": {"verdict": "FAIL", "findings": [{**FINDING, "message": 3}]}}),
        json.dumps({"default": {"verdict": 1, "findings": [FINDING]}}),
    ],
    ids=["nested lists", "nested maps", "no map", "no JSON", "a message that is none", "a verdict that is none"],
)
def test_explain_takes_any_history(toy: ToyRoot, text: str) -> None:
    done = explained_with_history(toy, text)
    assert "last verdict: none" in done


def explained_with_history(toy: ToyRoot, text: str) -> str:
    (toy.path / ".golden").mkdir(exist_ok=True)
    (toy.path / ".golden" / "last_verdicts.json").write_text(text)
    done = toy.golden("explain", "default")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_long_verdict_is_cut_and_cannot_move_the_cursor(toy: ToyRoot) -> None:
    findings: list[dict[str, Any]] = [{**FINDING, "path": f"place {index}"} for index in range(20)]
    findings[0] |= {"message": "\x1b[2J gone", "cause": "TIE_FLIP"}
    text = explained_with_history(toy, json.dumps({"default": {"verdict": "FAIL", "findings": findings}}))
    assert "    TOKEN (TIE_FLIP) place 0: \\u001b[2J gone" in text
    assert "    TOKEN place 1: first\n      second\n" in text
    assert text.endswith("    and 12 more; `--json` has them all\n")
