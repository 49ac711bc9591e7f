from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from framework.errors import ExitCode, ManifestError
from framework.manifest.fixture import Fixture, Relation, Witness
from framework.manifest.load import load_all, load_manifest
from tests.framework.manifest.samples import MANIFEST, make_root, refuse_to_list, write

FULL = """\
manifest: 1
name: scheduling/waves
summary: Four waves of requests.
tags: [async, waves]
model: small
engine: {async_sched_mode: legacy, max_tokens: 64}
ranks: 1
workload:
  prompts: [hello, {token_ids: [1, 2]}]
  arrivals: {requests_per_step: 2}
  repeats: 3
  sampling: {temperature: 0, max_new_tokens: 30}
assert:
  generated_tokens: exact
  counters: {"*": exact}
inform: [performance]
ignore: {finish_reason: it is always length here}
witness: ["counters.step_count > 0"]
relations:
  - {kind: same_outputs_as, with: scheduling/burst}
platforms: [cpu, nvidia-h200]
time_limit_s: 5
owner: scheduling
"""


def load(path: Path) -> Fixture:
    root = next(parent for parent in path.parents if parent.name == "fixtures")
    return load_manifest(path, fixtures_root=root)


def refusal(root: Path, text: str) -> str:
    with pytest.raises(ManifestError) as caught:
        load(write(root, "scheduling/waves", text=text))
    assert caught.value.exit_code == ExitCode.MALFORMED
    return str(caught.value)


def test_a_manifest_becomes_a_fixture(tmp_path: Path) -> None:
    path = write(make_root(tmp_path), "scheduling/waves", text=FULL)
    fixture = load(path)
    assert (fixture.name, fixture.path, fixture.model, fixture.ranks) == ("scheduling/waves", path, "small", 1)
    assert fixture.tags == ("async", "waves")
    assert fixture.engine == {"async_sched_mode": "legacy", "max_tokens": 64}
    assert [prompt.text for prompt in fixture.workload.prompts] == ["hello", None]
    assert (fixture.workload.requests_per_step, fixture.workload.repeats) == (2, 3)
    assert set(fixture.rules.asserted) == {"generated_tokens", "counters.*"}
    assert fixture.witnesses == (Witness("counters.step_count", ">", 0),)
    assert fixture.relations == (Relation("same_outputs_as", "scheduling/burst"),)
    assert fixture.platforms == ("cpu", "nvidia-h200")
    assert (fixture.time_limit_s, fixture.owner) == (5.0, "scheduling")
    assert fixture.lines["engine.max_tokens"] == 6
    assert len(fixture.manifest_sha256) == 64


def test_what_is_not_written_has_a_default(tmp_path: Path) -> None:
    fixture = load(write(make_root(tmp_path), "a"))
    assert (fixture.ranks, fixture.platforms, fixture.time_limit_s, fixture.owner) == (1, ("cpu",), 120.0, "")
    assert (fixture.workload.requests_per_step, fixture.workload.repeats) == (None, 1)


def test_a_number_in_quotes_names_file_line_value_and_way_out(tmp_path: Path) -> None:
    message = refusal(make_root(tmp_path), FULL.replace("requests_per_step: 2", 'requests_per_step: "32"'))
    assert message == (
        'fixtures/scheduling/waves.yaml:10:33: workload.arrivals.requests_per_step is the string "32", not an integer. '
        "Remove the quotes."
    )


def test_an_unknown_key_is_named_at_its_key(tmp_path: Path) -> None:
    message = refusal(make_root(tmp_path), FULL.replace("owner:", "ownr:"))
    assert message == 'fixtures/scheduling/waves.yaml:23:1: ownr: this key is not known here. Did you mean "owner"?'


def test_all_violations_are_shown_up_to_ten(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert len(refusal(root, FULL.replace("ranks: 1", "ranks: 0").replace("tags:", "tagz:")).split("\n")) == 2
    many = refusal(root, FULL + "".join(f"x{number}: 1\n" for number in range(30)))
    assert len(many.split("\n")) == 11
    assert many.endswith("… and 20 more.")


@pytest.mark.parametrize(
    ("old", "new", "part"),
    [
        ("generated_tokens: exact", "generated_tokens: exactly", 'waves.yaml:14: assert.generated_tokens: "exactly"'),
        ("generated_tokens: exact", "generated_tokens: 3", "waves.yaml:14: assert.generated_tokens: 3 is no rule"),
        ("inform: [performance]", "inform: [counters]", 'inform: "counters" stands under assert too'),
        ("it is always length here", '""', "waves.yaml:17: ignore.finish_reason: no reason"),
        ("counters.step_count > 0", "counters.step_count", "waves.yaml:18:11: witness[0]: "),
        (
            "name: scheduling/waves",
            "name: scheduling/wave",
            'name is "scheduling/wave", but the file is scheduling/waves.yaml',
        ),
        ("prompts: [hello, {token_ids: [1, 2]}]", "repeats: 1", "stands here and in line 9"),
        ("  prompts: [hello, {token_ids: [1, 2]}]\n", "", "waves.yaml:9:3: workload: holds both or neither of prompts"),
        ("{token_ids: [1, 2]}", "{token_ids: [1], text: x}", "waves.yaml:9: prompts[1]: a prompt has exactly one of"),
        ("{token_ids: [1, 2]}", "{arrival_step: 3}", "this has none of them"),
        ("manifest: 1\n", "", '"manifest" is missing'),
    ],
)
def test_an_error_names_its_place(tmp_path: Path, old: str, new: str, part: str) -> None:
    assert old in FULL
    assert part in refusal(make_root(tmp_path), FULL.replace(old, new))


@pytest.mark.parametrize("text", ["", "[]", "text", "3", "null"])
def test_what_is_no_map_is_no_manifest(tmp_path: Path, text: str) -> None:
    assert refusal(make_root(tmp_path), text).startswith("fixtures/scheduling/waves.yaml:1")


def test_one_broken_manifest_does_not_hide_the_others(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for name in ("b", "a/z", "a"):
        write(root, name)
    write(root, "broken", text="a: no")
    write(root, "worse", text="\x00")
    loaded = load_all(root / "fixtures")
    assert [fixture.name for fixture in loaded.fixtures] == ["a", "a/z", "b"]
    assert [str(error).partition(":")[0] for error in loaded.errors] == ["fixtures/broken.yaml", "fixtures/worse.yaml"]


def test_models_hidden_folders_and_other_files_are_no_manifests(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for name in ("models/recipe", ".hidden/x", "sub/models/y"):
        write(root, name)
    (root / "fixtures" / "notes.txt").write_text("x")
    assert [fixture.name for fixture in load_all(root / "fixtures").fixtures] == ["sub/models/y"]


@pytest.mark.parametrize("name", ["a.yml", "a.YAML", "a.Yaml", "a.YML"])
def test_a_manifest_that_would_never_be_run_is_an_error(tmp_path: Path, name: str) -> None:
    root = make_root(tmp_path)
    write(root, "b")
    write(root, "a").rename(root / "fixtures" / name)
    loaded = load_all(root / "fixtures")
    (error,) = loaded.errors
    assert str(error).startswith(f"fixtures/{name}: ")
    assert "Rename it" in str(error)
    assert [fixture.name for fixture in loaded.fixtures] == ["b"]


@pytest.mark.parametrize(
    ("link", "target", "part"),
    [
        ("more", "../elsewhere", "a link to a folder"),
        ("sub/back", "..", "a link to a folder"),
        ("sub/models", "../models", "a link to a folder"),
        ("gone", "nowhere", "a link that leads nowhere"),
        ("gone.jsonl", "nowhere", "a link that leads nowhere"),
        ("itself", "itself", "a link that leads nowhere"),
        ("a.yaml", "a.yaml", "a link that leads to itself"),
        ("a.yaml", "nowhere.yaml", "cannot be read"),
        ("a.YAML", "a.YAML", "Rename it"),
    ],
)
def test_a_link_whose_manifests_would_never_be_run_is_one_error(
    tmp_path: Path, link: str, target: str, part: str
) -> None:
    root = make_root(tmp_path)
    write(root, "b")
    write(root, "sub/c")
    (root / "elsewhere").mkdir()
    (root / "fixtures" / link).symlink_to(target)
    loaded = load_all(root / "fixtures")
    (error,) = loaded.errors
    assert str(error).startswith(f"fixtures/{link}: ")
    assert part in str(error)
    assert [fixture.name for fixture in loaded.fixtures] == ["b", "sub/c"]


def test_links_among_models_and_hidden_ones_are_left_alone(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    write(root, "b")
    (root / "fixtures" / ".cache").symlink_to("nowhere")
    (root / "fixtures" / "models" / "other").symlink_to("small")
    (root / "fixtures" / "models" / "gone").symlink_to("nowhere")
    assert load_all(root / "fixtures").errors == ()


def test_a_folder_that_cannot_be_read_is_an_error_and_hides_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_root(tmp_path)
    write(root, "b")
    write(root, "secret/c")
    refuse_to_list(monkeypatch, root / "fixtures" / "secret")
    loaded = load_all(root / "fixtures")
    (error,) = loaded.errors
    assert str(error).startswith("fixtures/secret: a folder that cannot be read")
    assert [fixture.name for fixture in loaded.fixtures] == ["b"]


def test_a_folder_without_manifests_holds_none(tmp_path: Path) -> None:
    loaded = load_all(tmp_path / "nowhere")
    assert loaded.fixtures == ()
    assert loaded.errors == ()


def test_a_link_out_of_the_fixtures_is_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root")
    outside = tmp_path / "a.yaml"
    outside.write_text(MANIFEST.format(name="a", engine="{}"))
    (root / "fixtures" / "a.yaml").symlink_to(outside)
    (error,) = load_all(root / "fixtures").errors
    assert "leads out of fixtures/" in str(error)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_edit_gives_a_fixture_or_one_error(tmp_path: Path, data: st.DataObject) -> None:
    lines = FULL.encode().split(b"\n")
    for _ in range(data.draw(st.integers(1, 3))):
        index = data.draw(st.integers(0, len(lines) - 1))
        line = lines[index]
        at = data.draw(st.integers(0, len(line)))
        piece = data.draw(
            st.binary(max_size=6)
            | st.sampled_from([b": ", b"- ", b"{}", b"[]", b"no", b"'", b"  ", b"&a ", b"*a", b"~"])
        )
        lines[index] = line[:at] + piece + line[at + data.draw(st.integers(0, 4)) :]
    folder = tmp_path / "fixtures" / "scheduling"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "waves.yaml"
    path.write_bytes(b"\n".join(lines))
    try:
        fixture = load_manifest(path, fixtures_root=tmp_path / "fixtures")
    except ManifestError as error:
        assert str(error).startswith("fixtures/scheduling/waves.yaml")  # noqa: PT017
    else:
        assert fixture.name == "scheduling/waves"
