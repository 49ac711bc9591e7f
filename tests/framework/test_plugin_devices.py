"""pytest runs on devices: required ones, leases under xdist, and the order in which xdist hands fixtures out."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.framework.test_plugin import run
from tests.framework.toy_root import REPOSITORY, ToyRoot, make_toy_root
from tests.framework.verbs.test_run_devices import PLATFORM, assert_never_shared, assert_nothing_is_left, audit

MANY = 200


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> ToyRoot:
    root = make_toy_root(tmp_path_factory.mktemp("plugin"))
    root.write("first")
    root.regen()
    for number in range(MANY):
        name = f"quick/{number:03}"
        root.write(name, more=f"platforms: [{PLATFORM}]")
        root.share_golden("first", name, PLATFORM)
    return root


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    variables = {
        "PYTHONPATH": str(REPOSITORY),
        "TOY_PLATFORMS": f"{PLATFORM},cpu",
        "TOY_AUDIT": str(tmp_path / "audit.jsonl"),
        "GOLDEN_FAKE_DEVICES": "2",
        "GOLDEN_LEASE_FOLDER": str(tmp_path / "leases"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return variables


def test_workers_of_xdist_never_share_a_device(
    recorded: ToyRoot, machine: dict[str, str], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recorded.path)
    result = run(pytester, "fixtures/quick", "-n", "4", "-q", timeout=300)
    result.assert_outcomes(passed=MANY)
    events = audit(machine)
    assert Counter(event["event"] for event in events) == {"begin": MANY, "end": MANY}
    assert_never_shared(machine)
    assert_nothing_is_left(machine)


def test_a_lane_that_requires_a_device_fails_without(
    recorded: ToyRoot, machine: dict[str, str], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recorded.path)
    report = pytester.path / "report.json"
    arguments = ("fixtures/first.yaml", "fixtures/quick/000.yaml", "--golden-require-device=toy-gpu")
    assert run(pytester, *arguments).ret == 0
    monkeypatch.setenv("TOY_PLATFORMS", "cpu")
    result = run(pytester, *arguments, f"--golden-report={report}")
    result.assert_outcomes(passed=1, skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["NOT ENOUGH: a device toy-gpu is required, and 1 of its fixtures were skipped: *000"])
    assert json.loads(report.read_text())["exit_code"] == 13
    assert (
        run(pytester, "fixtures/first.yaml", "-n", "1", "--golden-require-device").ret == pytest.ExitCode.TESTS_FAILED
    )


def test_xdist_hands_out_the_longest_first_and_a_damaged_record_is_said_once(
    machine: dict[str, str], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = make_toy_root(tmp_path / "root")
    for name in ("a", "b", "c"):
        root.write(name)
    root.regen()
    monkeypatch.chdir(root.path)
    recorded = {"schema": "golden.durations/1", "seconds": {"cpu": {"a": 1.0, "b": 3.0, "c": 2.0}}}
    (root.path / ".golden" / "durations.json").write_text(json.dumps(recorded))
    assert run(pytester, "fixtures", "-n", "1").ret == 0
    assert [event["fixture"] for event in audit(machine)[-6:] if event["event"] == "begin"] == ["b", "c", "a"]
    (root.path / ".golden" / "durations.json").write_text("{")
    result = run(pytester, "fixtures", "-n", "2")
    result.assert_outcomes(passed=3)
    assert result.stderr.str().count("durations.json") == 1
