from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from framework.manifest.lint import lint
from framework.manifest.linted import Severity
from tests.framework.manifest.samples import (
    SETTINGS,
    check_settings,
    fixtures_of,
    make_root,
    only,
    problems,
    refuse_to_list,
    write,
    write_golden,
)


def test_a_good_fixture_has_no_problem(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "a", engine="{async_sched_mode: legacy, max_tokens: 4, scale: 1, routing_replay_path: null}")
    write_golden(root, "a")
    assert lint(fixtures_of(root), root=root, settings=SETTINGS, check_settings=check_settings) == ()


@pytest.mark.parametrize(
    ("engine", "path", "message", "way_out"),
    [
        ("{max_token: 4}", "engine.max_token", "no such setting", 'Did you mean "max_tokens"?'),
        ("{max_tokens: '4'}", "engine.max_tokens", 'is the string "4", not an integer', "Write an integer"),
        ("{max_tokens: 4.0}", "engine.max_tokens", "is 4.0, not an integer", "Write an integer"),
        ("{max_tokens: true}", "engine.max_tokens", "is true, not an integer", "Write an integer"),
        ("{max_tokens: 0}", "engine.max_tokens", "is 0", "at least 1"),
        ("{max_tokens: null}", "engine.max_tokens", "is null", "Write an integer"),
        ("{scale: 0.25}", "engine.scale", "is 0.25", "at least 0.5"),
        ("{scale: big}", "engine.scale", "not a number", "Write a number"),
        ("{moe_enable_routing_replay: 1}", "engine.moe_enable_routing_replay", "is 1", "true or false"),
        ("{async_sched_mode: asinc}", "engine.async_sched_mode", "none of its values", 'Did you mean "async"?'),
        ("{async_sched_mode: true}", "engine.async_sched_mode", "is true, not a string", "Write a string"),
        (
            "{moe_enable_routing_replay: true}",
            "engine.moe_enable_routing_replay",
            "moe_enable_routing_replay: true needs async_sched_mode: legacy",
            "Pin settings that go together",
        ),
    ],
)
def test_settings_are_checked_before_an_engine_starts(
    tmp_path: Path, engine: str, path: str, message: str, way_out: str
) -> None:
    root = make_root(tmp_path)
    write(root, "a", engine=engine)
    problem = only(root)
    assert (problem.file, problem.line, problem.path) == ("fixtures/a.yaml", 5, path)
    assert message in problem.message
    assert way_out in f"{problem.way_out}?".replace("??", "?")
    assert problem.severity is Severity.ERROR


def test_ranks_other_than_one_are_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "a", more="ranks: 2\n")
    assert only(root).path == "ranks"


def test_a_missing_model_names_those_that_are_there(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    path = write(root, "a")
    path.write_text(path.read_text().replace("model: small", "model: smal"))
    problem = only(root)
    assert (problem.path, problem.line) == ("model", 4)
    assert '"small"' in problem.message


@pytest.mark.parametrize("more", ["tags: [performance]\n", "performance"])
def test_a_performance_fixture_pins_its_mode(tmp_path: Path, more: str) -> None:
    root = make_root(tmp_path)
    rule = "  performance: {x: {ratio: [0.5, 2]}}\n"
    for name, engine in (("a", "{}"), ("b", "{async_sched_mode: async}")):
        path = write(root, name, engine=engine, more="" if more == "performance" else more)
        if more == "performance":
            path.write_text(path.read_text().replace("assert:\n", f"assert:\n{rule}"))
    problem = only(root)
    assert problem.file == "fixtures/a.yaml"
    assert problem.way_out == "Pin engine.async_sched_mode"


@pytest.mark.parametrize(("relations", "count"), [(0, 1), (1, 0), (2, 1)])
def test_a_paired_ratio_has_exactly_one_partner(tmp_path: Path, relations: int, count: int) -> None:
    root = make_root(tmp_path)
    others = [f"legacy{number}" for number in range(relations)]
    for name in others:
        write(root, name, engine="{async_sched_mode: legacy}")
    written = ", ".join(f"{{kind: async_equals_legacy, with: {name}}}" for name in others)
    path = write(root, "a", engine="{async_sched_mode: async}", more=f"relations: [{written}]\n")
    rule = "  performance: {paired_throughput_ratio: {ratio: [0.5, 2]}}\n"
    path.write_text(path.read_text().replace("assert:\n", f"assert:\n{rule}"))
    assert [problem.path for problem in problems(root)] == ["assert.performance.paired_throughput_ratio"] * count


@pytest.mark.parametrize(
    ("relations", "message"),
    [
        ("[{kind: same_outputs_as, with: a}]", "related to itself"),
        ("[{kind: same_outputs_as, with: bb}]", 'there is no fixture "bb"'),
        ("[{kind: same_outputs_as, with: b}, {kind: same_outputs_as, with: b}]", "stands there twice"),
        ("[{kind: async_equals_legacy, with: b}]", "both fixtures run with async_sched_mode async"),
    ],
)
def test_a_relation_that_proves_nothing_is_refused(tmp_path: Path, relations: str, message: str) -> None:
    root = make_root(tmp_path)
    write(root, "b")
    write(root, "a", more=f"relations: {relations}\n")
    problem = only(root)
    assert message in problem.message
    assert problem.path in ("relations[0]", "relations[1]")
    assert problem.line == 11


def test_an_unpinned_default_and_the_other_mode_are_a_pair(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "b", engine="{async_sched_mode: legacy}")
    write(root, "a", more="relations: [{kind: async_equals_legacy, with: b}]\n")
    assert problems(root) == []


def test_a_relation_to_a_broken_manifest_is_left_to_its_own_error(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "b", text="a: no")
    write(root, "a", more="relations: [{kind: same_outputs_as, with: b}]\n")
    assert problems(root) == []


def test_a_fixture_without_witness_is_warned_about(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    path = write(root, "a")
    path.write_text(path.read_text().replace('witness: ["counters.step_count > 0"]\n', ""))
    problem = only(root)
    assert (problem.path, problem.severity) == ("witness", Severity.WARNING)


@pytest.mark.parametrize(
    "witness",
    [
        "counters.a >= 0",
        "counters.a >= -0.5",
        "counters.a > -1",
        "counters.a != -3",
        "counters.a != 0.5",
        "counters.a < 1e300",
        "counters.a <= 1e16",
        "counters.a != 1e300",
        "counters.of.kind >= 0",
        'requests["0"].generated_tokens[0] >= 0',
        'requests["0"].generated_tokens[0] != 1.5',
        'requests["0"].prompt_tokens[0] > -1',
        'requests["0"].routing_indices[0][0][1] >= 0',
        'requests["0"].generated_logprobs[0] <= 0',
        'requests["0"].prompt_logprobs[0] < 0.5',
        'requests["0"].generated_logprobs[0] > -1e300',
        'requests["0"].top_n_logprobs[0][0].token_id >= 0',
        'requests["0"].top_n_logprobs[0][0].logprob <= 0',
        'requests["0"].margins[0] >= 0',
        "performance.a < 1e300",
        "performance.a > -1e300",
    ],
)
def test_a_witness_that_cannot_fail_is_refused(tmp_path: Path, witness: str) -> None:
    root = make_root(tmp_path)
    path = write(root, "a")
    path.write_text(path.read_text().replace('"counters.step_count > 0"', f"'{witness}'"))
    problem = only(root)
    assert (problem.path, problem.severity) == ("witness[0]", Severity.ERROR)


@pytest.mark.parametrize(
    "witness",
    [
        "counters.a >= 1",
        "counters.a > 0",
        "counters.a == 0",
        "counters.a < 0",
        "counters.a != 0",
        "counters.a != 3",
        "counters.a != 3.0",
        "counters.a <= 1000000",
        'requests["0"].generated_tokens[0] > 0',
        'requests["0"].generated_logprobs[0] < 0',
        'requests["0"].generated_logprobs[0] >= -1.5',
        'requests["0"].generated_logprobs[0] != -0.5',
        'requests["0"].margins[0] > 0.5',
        "performance.a >= 0",
        "performance.a != 0.5",
    ],
)
def test_a_witness_that_can_fail_is_accepted(tmp_path: Path, witness: str) -> None:
    root = make_root(tmp_path)
    path = write(root, "a")
    path.write_text(path.read_text().replace('"counters.step_count > 0"', f"'{witness}'"))
    assert problems(root) == []


def test_a_tolerance_that_lets_zero_pass_is_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    path = write(root, "a")
    path.write_text(path.read_text().replace("assert:\n", "assert:\n  generated_logprobs: {atol: 0, rtol: 1}\n"))
    assert only(root).path == "assert.generated_logprobs"


@pytest.mark.parametrize(
    ("name", "atol", "refused"),
    [
        ("generated_logprobs", "1", True),
        ("prompt_logprobs", "1e9", True),
        ("top_n_logprobs", "2.5", True),
        ("generated_logprobs", "0.5", False),
        ("margins", "1", False),
    ],
)
def test_a_tolerance_of_logprobs_that_cannot_fail_is_refused(
    tmp_path: Path, name: str, atol: str, refused: bool
) -> None:
    root = make_root(tmp_path)
    path = write(root, "a")
    path.write_text(path.read_text().replace("assert:\n", f"assert:\n  {name}: {{atol: {atol}, rtol: 0}}\n"))
    assert [problem.path for problem in problems(root)] == [f"assert.{name}"] * refused
    assert all("cannot fail" in problem.message for problem in problems(root))


@pytest.mark.parametrize("target", ["nowhere.json", "cpu.json", "../.."])
def test_a_golden_that_is_a_broken_link_is_one_error(tmp_path: Path, target: str) -> None:
    root = make_root(tmp_path)
    write(root, "a")
    path = root / "goldens" / "a" / ("cpu.json" if target.endswith("json") else "more")
    path.parent.mkdir(parents=True)
    path.symlink_to(target)
    problem = only(root)
    assert (problem.file, problem.path, problem.severity) == (
        path.relative_to(root).as_posix(),
        "golden",
        Severity.ERROR,
    )


def test_goldens_in_a_folder_that_cannot_be_read_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_root(tmp_path)
    write(root, "a")
    write_golden(root, "a")
    refuse_to_list(monkeypatch, root / "goldens" / "a")
    assert (only(root).file, only(root).path) == ("goldens/a", "golden")


def refuse_sampling(sampling: Mapping[str, Any]) -> None:
    for name in ("temperature", "top_k"):
        if sampling.get(name):
            raise ValueError(f"sampling: {name} {sampling[name]!r} is not something this engine can do.")


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ("  prompts: [a]\n  sampling: {temperature: 0, top_k: 0}\n", []),
        ("  prompts: [a, b]\n  sampling: {temperature: 0.5}\n", [("workload.sampling.temperature", 8)]),
        (
            "  prompts:\n    - a\n    - {text: b, sampling: {top_k: 4}}\n    - {text: c, sampling: {top_k: 4}}\n",
            [("workload.prompts[1].sampling.top_k", 9)],
        ),
        (
            "  prompts:\n    - {text: b, sampling: {temperature: 0}}\n  sampling: {temperature: 0.5}\n",
            [],
        ),
        (
            "  prompts: [a, {text: b, sampling: {top_k: 4, temperature: 0}}]\n  sampling: {temperature: 0.5}\n",
            [("workload.sampling.temperature", 8), ("workload.prompts[1].sampling.top_k", 7)],
        ),
        ("  prompt_file: p.jsonl\n", [("workload.prompt_file", 7)]),
    ],
)
def test_sampling_that_the_engine_cannot_do_is_refused_with_its_line(
    tmp_path: Path, workload: str, expected: list[tuple[str, int]]
) -> None:
    root = make_root(tmp_path)
    path = write(root, "a")
    path.write_text(path.read_text().replace("  prompts: [hello]\n", workload))
    (root / "fixtures" / "p.jsonl").write_text('"a"\n{"text": "b", "sampling": {"top_k": 3}}\n')
    write_golden(root, "a")
    found = lint(
        fixtures_of(root),
        root=root,
        settings=SETTINGS,
        check_settings=check_settings,
        check_sampling=refuse_sampling,
    )
    assert {(problem.path, problem.line) for problem in found} == set(expected)
    assert all("is not something this engine can do" in problem.message for problem in found)
    assert all(problem.severity is Severity.ERROR for problem in found)


def test_a_misspelt_field_is_warned_about(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    path = write(root, "a")
    path.write_text(path.read_text().replace("assert:\n", "assert:\n  generated_txt: exact\n"))
    problem = only(root)
    assert (problem.path, problem.severity) == ("assert.generated_txt", Severity.WARNING)


def test_names_that_differ_in_case_only_collide(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "sub/waves")
    write(root, "sub/Waves")
    if len(os.listdir(root / "fixtures" / "sub")) < 2:  # noqa: PTH208
        pytest.skip("this disk ignores case, so the two cannot be written")
    assert "one file on a disk that ignores case" in only(root).message


def test_a_missing_golden_is_a_warning_for_each_platform(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "a", more="platforms: [cpu, nvidia-h200]\n")
    write_golden(root, "a")
    (problem,) = lint(fixtures_of(root), root=root, settings=SETTINGS, check_settings=check_settings)
    assert "no golden for nvidia-h200" in problem.message
    assert (problem.path, problem.line, problem.severity) == ("platforms", 11, Severity.WARNING)


def test_a_golden_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "a")
    write(root, "broken", text="a: no")
    write_golden(root, "a")
    write_golden(root, "broken")
    assert problems(root) == []
    write_golden(root, "a", "nvidia-h200")
    write_golden(root, "gone")
    assert [(problem.file, problem.path) for problem in problems(root)] == [
        ("goldens/a/nvidia-h200.json", "platform"),
        ("goldens/gone/cpu.json", "fixture"),
    ]


def test_a_golden_over_sixteen_megabytes_is_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "a")
    golden = write_golden(root, "a")
    os.truncate(golden, 16 * 1024 * 1024)
    assert problems(root) == []
    os.truncate(golden, 16 * 1024 * 1024 + 1)
    assert only(root).path == "size"


def test_a_problem_is_one_line_for_people(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "a", engine="{max_tokens: 0}")
    assert str(only(root)) == "fixtures/a.yaml:5: engine.max_tokens: is 0. It must be at least 1."


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("engine.max_tokens", "async_sched_mode: legacy", "async_sched_mode: legacy, max_tokens: 8"),
        ("workload.prompts", "workload:", "workload:\n  # another one"),
    ],
)
def test_a_ratio_against_other_work_is_refused(tmp_path: Path, name: str, old: str, new: str) -> None:
    root = make_root(tmp_path)
    other = write(root, "legacy", engine="{async_sched_mode: legacy}")
    relations = "relations: [{kind: async_equals_legacy, with: legacy}]\n"
    path = write(root, "a", engine="{async_sched_mode: async}", more=relations)
    rule = "  performance: {paired_throughput_ratio: {ratio: [0.5, 2]}}\n"
    path.write_text(path.read_text().replace("assert:\n", f"assert:\n{rule}"))
    assert problems(root) == []
    text = other.read_text().replace(old, new)
    if name == "workload.prompts":
        text = re.sub(r"prompts: .*", "prompts: [something else]", text)
    other.write_text(text)
    problem = only(root)
    assert problem.path == "relations[0]"
    assert name in problem.message
