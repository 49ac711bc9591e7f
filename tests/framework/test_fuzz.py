"""Ten thousand garbled files: whatever a file holds, a verb ends with a documented exit code and says it in words."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from framework import cli
from framework.errors import ExitCode
from framework.golden.seal import sealed_bytes
from framework.report.streams import prepare_streams
from framework.run.in_process import InProcessRunner
from framework.workspace import load_adapter, open_workspace
from tests.framework.garbling import garbled_document, garbled_text, json_text
from tests.framework.quarantine.entries import entry_text
from tests.framework.toy_root import CONFIGURATION, ToyRoot, make_toy_root

SHARDS = 8
COMPARISONS, MANIFESTS, GOLDENS, SETTINGS = 6400, 2000, 1400, 200
"""Garbled files of each kind, 10,000 in all."""

RULES = """\
assert:
  generated_tokens: exact
  generated_text: exact
  generated_logprobs: {atol: 0.001, rtol: 0.0}
  counters: {'*': exact}
  performance: {seconds: {ratio: [0.5, 2.0]}}
inform: [margins]
ignore: {finish_reason: not under test}
"""
QUARANTINE = "quarantine: 1\nentries:\n" + entry_text("first", more="  # known\n") + entry_text("second", kind="[TEXT]")
RECORD: dict[str, Any] = {
    "schema": "golden.record/1",
    "fixture": "case",
    "requests": {
        "0": {
            "prompt_tokens": [5, 6],
            "generated_tokens": [1, 2, 3],
            "generated_text": "abc",
            "finish_reason": "length",
            "generated_logprobs": [-0.1, -0.2, -0.3],
            "margins": [1.0, 0.5, 2.0],
        }
    },
    "counters": {"step_count": 3},
    "performance": {"seconds": [1.0, 1.1, 0.9]},
}
VERBS_WITHOUT_AN_ENGINE = (
    ("lint",),
    ("check",),
    ("list",),
    ("which", "*"),
    ("explain", "first"),
)


def end_in_words(arguments: list[str], capsys: pytest.CaptureFixture[str], what: object) -> ExitCode:
    prepare_streams()
    code = cli.run(arguments)
    printed = capsys.readouterr()
    said = printed.out + printed.err
    assert code in ExitCode, what
    assert "Traceback" not in said, (what, said)
    assert "internal error" not in said, (what, said)
    assert said.strip(), (what, "it ended without a word")
    if "--json" in arguments and "run" not in arguments:  # in this process the toy engine prints to stdout too
        assert isinstance(json.loads(printed.out), dict), what
    return code


def shard(count: int, index: int, kind: str) -> Iterator[random.Random]:
    """The generators of one shard, each of its own seed, so that a failure can be run alone."""
    for number in range(index, count, SHARDS):
        yield random.Random(f"{kind} {number}")  # noqa: S311 - garbage, no secret


@pytest.mark.parametrize("index", range(SHARDS))
def test_comparing_garbled_files_ends_in_words(index: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {"rules.yaml": RULES, "golden.json": json_text(RECORD), "current.json": json_text(RECORD)}
    paths = {name: tmp_path / name for name in files}
    arguments = ["compare", "--rules", *map(str, paths.values())]
    for path, text in zip(paths.values(), files.values(), strict=True):
        path.write_text(text)
    assert end_in_words(arguments, capsys, "nothing is garbled") is ExitCode.GOOD
    codes = set()
    for generator in shard(COMPARISONS, index, "comparison"):
        name = generator.choice(list(files))
        if name != "rules.yaml" and generator.random() < 0.5:
            data = json_text(garbled_document(RECORD, generator)).encode()
        else:
            data = garbled_text(files[name], generator)
        paths[name].write_bytes(data)
        as_json = ["--json"] if generator.random() < 0.3 else []
        codes.add(end_in_words([*arguments, *as_json], capsys, (name, data[:2000])))
        paths[name].write_text(files[name])
    assert {ExitCode.GOOD, ExitCode.REGRESSION, ExitCode.MALFORMED, ExitCode.GOLDEN} <= codes


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("recorded") / "root")
    root.write("first", prompts="hello, world", more="relations: [{kind: same_outputs_as, with: second}]")
    root.write("second", prompts="hello, world", engine="async_sched_mode: legacy")
    root.regen()
    return root


@pytest.fixture
def root(recorded: ToyRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToyRoot:
    """A copy of the recorded root, in whose runs the engine is this very process."""
    copied = recorded.copy(tmp_path / "root")
    workspace = open_workspace(copied.path, None)
    runner = InProcessRunner(load_adapter(workspace))
    monkeypatch.setattr("framework.verbs.run_fixtures.SubprocessRunner", lambda *_, **__: runner)
    return copied


def test_nothing_garbled_is_good(root: ToyRoot, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in (*VERBS_WITHOUT_AN_ENGINE, ("run",)):
        assert end_in_words(["--root", str(root.path), *verb], capsys, verb) is ExitCode.GOOD


def garble_and_run(
    path: Path,
    garbled: Callable[[random.Random], bytes],
    verbs: tuple[tuple[str, ...], ...],
    generators: Iterator[random.Random],
    root: ToyRoot,
    capsys: pytest.CaptureFixture[str],
) -> set[ExitCode]:
    whole = path.read_bytes() if path.is_file() else None
    codes = set()
    for generator, verb in zip(generators, itertools.cycle(verbs), strict=False):
        data = garbled(generator)
        path.write_bytes(data)
        as_json = ["--json"] if generator.random() < 0.3 else []
        arguments = ["--root", str(root.path), *verb, *as_json]
        codes.add(end_in_words(arguments, capsys, (verb, data[:2000])))
        path.unlink()
        if whole is not None:
            path.write_bytes(whole)
    return codes


@pytest.mark.parametrize("index", range(SHARDS))
def test_a_garbled_manifest_ends_in_words(index: int, root: ToyRoot, capsys: pytest.CaptureFixture[str]) -> None:
    path = root.path / "fixtures" / "first.yaml"
    text = path.read_text()
    codes = garble_and_run(
        path,
        lambda generator: garbled_text(text, generator),
        VERBS_WITHOUT_AN_ENGINE,
        shard(MANIFESTS, index, "manifest"),
        root,
        capsys,
    )
    assert {ExitCode.GOOD, ExitCode.MALFORMED, ExitCode.GOLDEN} <= codes


@pytest.mark.parametrize("index", range(SHARDS))
def test_a_garbled_golden_ends_in_words(index: int, root: ToyRoot, capsys: pytest.CaptureFixture[str]) -> None:
    path = root.golden_path("first")
    text = path.read_text()
    document = json.loads(text)
    codes = garble_and_run(
        path,
        lambda generator: _garbled_golden(text, document, generator),
        (("run",), *VERBS_WITHOUT_AN_ENGINE),
        shard(GOLDENS, index, "golden"),
        root,
        capsys,
    )
    assert {ExitCode.GOOD, ExitCode.GOLDEN} <= codes


def _garbled_golden(text: str, document: dict[str, Any], generator: random.Random) -> bytes:
    """Half of them are sealed anew, so that what lies behind the seal is reached."""
    changed = garbled_document(document, generator)
    if generator.random() < 0.5 and isinstance(changed, dict):
        try:
            return sealed_bytes({name: value for name, value in changed.items() if name != "seal"})
        except ValueError:
            pass
    return garbled_text(text, generator)


@pytest.mark.parametrize(
    ("file", "text", "verbs"),
    [
        ("pyproject.toml", CONFIGURATION, VERBS_WITHOUT_AN_ENGINE),
        (".golden/last_verdicts.json", '{"first": {"verdict": "PASS", "findings": []}}', (("explain", "first"),)),
        ("quarantine.yaml", QUARANTINE, (("quarantine",), ("lint",), ("check",), ("run",))),
    ],
)
def test_a_garbled_file_beside_them_ends_in_words(
    file: str, text: str, verbs: tuple[tuple[str, ...], ...], root: ToyRoot, capsys: pytest.CaptureFixture[str]
) -> None:
    path = root.path / file
    path.parent.mkdir(exist_ok=True)
    generators = (random.Random(f"{file} {number}") for number in range(SETTINGS // 3))  # noqa: S311
    document = json.loads(text) if file.endswith(".json") else None

    def garbled(generator: random.Random) -> bytes:
        if document is not None and generator.random() < 0.5:
            return json_text(garbled_document(document, generator)).encode()
        return garbled_text(text, generator)

    assert garble_and_run(path, garbled, verbs, generators, root, capsys)


def test_the_process_itself_ends_in_words(tmp_path: Path, recorded: ToyRoot) -> None:
    root = recorded.copy(tmp_path / "root")
    path = root.path / "fixtures" / "first.yaml"
    text = path.read_text()
    for generator in shard(8 * SHARDS, 0, "process"):
        path.write_bytes(garbled_text(text, generator))
        done = root.golden("run", "first")
        assert done.returncode in set(ExitCode)
        assert "Traceback" not in done.stdout + done.stderr
        assert "internal error" not in done.stdout + done.stderr
