from __future__ import annotations

from pathlib import Path

import pytest

from framework.run.required import Seen, unmet
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("require"))
    root.write("first")
    root.regen()
    for name in ("on/one", "on/two"):
        root.write(name, more="platforms: [toy-gpu, cpu]")
        root.share_golden("first", name, "toy-gpu")
        root.share_golden("first", name, "cpu")
    return root


@pytest.fixture
def toy(recorded: ToyRoot, tmp_path: Path) -> ToyRoot:
    return recorded.copy(tmp_path / "root")


@pytest.fixture
def device(tmp_path: Path) -> dict[str, str]:
    return {"TOY_PLATFORMS": "toy-gpu,cpu", "GOLDEN_LEASE_FOLDER": str(tmp_path / "leases")}


@pytest.mark.parametrize("option", ["--require-device", "--require-device=toy-gpu"])
def test_a_lane_whose_fixtures_ran_on_its_device_is_green(toy: ToyRoot, device: dict[str, str], option: str) -> None:
    code, document = toy.json("run", option, **device)
    assert code == 0
    assert "unmet" not in document


@pytest.mark.parametrize("option", ["--require-device", "--require-device=toy-gpu"])
def test_without_the_device_nothing_runs(toy: ToyRoot, option: str) -> None:
    done = toy.golden("run", option)
    assert done.returncode == 13
    assert "this machine has no device" in done.stderr
    assert "PASS" not in done.stdout + done.stderr


def test_a_skipped_fixture_of_the_device_is_never_green(toy: ToyRoot, device: dict[str, str]) -> None:
    toy.write("on/other", more="platforms: [other-gpu]")
    code, document = toy.json("run", "--require-device", **device)
    assert (code, document["exit_code"], document["verdict"]) == (13, 13, "FAIL")
    assert document["unmet"] == "a device is required, and 1 of its fixtures were skipped: on/other"
    assert "NOT ENOUGH: a device is required" in toy.golden("run", "--require-device", **device).stdout
    assert toy.golden("run", "--require-device=toy-gpu", **device).returncode == 0, "that lane is for another"


def test_fixtures_that_ran_elsewhere_do_not_count(toy: ToyRoot, device: dict[str, str]) -> None:
    for arguments in (["first"], ["--platform", "cpu"]):
        code, document = toy.json("run", *arguments, "--require-device=toy-gpu", **device)
        assert code == 13
        assert document["unmet"] == "a device toy-gpu is required, and no fixture ran on one"


def test_a_regression_stays_one(toy: ToyRoot, device: dict[str, str]) -> None:
    toy.set_default_mode("legacy")
    assert toy.golden("run", "first", "--require-device", **device).returncode == 1


@pytest.mark.parametrize("name", ["cpu", "toy-gpo", "on/one"])
def test_a_name_that_is_no_device_is_refused(toy: ToyRoot, device: dict[str, str], name: str) -> None:
    done = toy.golden("run", "--require-device", name, **device)
    assert done.returncode == 2
    assert f"no fixture is for a device {name!r}" in done.stderr


def test_pretended_devices_are_none(toy: ToyRoot, device: dict[str, str]) -> None:
    done = toy.golden("run", "--require-device", GOLDEN_FAKE_DEVICES="2", **device)
    assert done.returncode == 2
    assert "only pretended" in done.stderr


@pytest.mark.parametrize(
    ("required", "seen", "words"),
    [
        (None, [], ""),
        ("", [], "no fixture ran on one"),
        ("", [Seen("a", "cpu", ("cpu",))], "no fixture ran on one"),
        ("", [Seen("a", "g", ("g",)), Seen("b", "", ("cpu",))], ""),
        ("g", [Seen("a", "g", ("g",)), Seen("b", "", ("h",))], ""),
        ("g", [Seen("a", "g", ("g",)), Seen("b", "", ("h", "g"))], "skipped: b"),
    ],
)
def test_what_counts(required: str | None, seen: list[Seen], words: str) -> None:
    why = unmet(required, seen)
    assert words in why
    assert bool(why) == bool(words)
