from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framework import cli
from tests.framework.toy_root import REPOSITORY

RULES = "assert: {generated_tokens: exact, counters: {'*': exact}}\n"
RECORD: dict[str, Any] = {
    "schema": "golden.record/1",
    "fixture": "case",
    "requests": {"0": {"prompt_tokens": [1], "generated_tokens": [1, 2, 3]}},
    "counters": {"step_count": 3},
}


def write(tmp_path: Path, golden: object, current: object, rules: str = RULES) -> list[str]:
    texts = {"rules.yaml": rules, "golden.json": golden, "current.json": current}
    for name, content in texts.items():
        (tmp_path / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return ["compare", "--rules", *(str(tmp_path / name) for name in texts)]


def changed(tokens: list[Any]) -> dict[str, Any]:
    return RECORD | {"requests": {"0": {"prompt_tokens": [1], "generated_tokens": tokens}}}


def test_equal_records_pass_without_torch_and_from_anywhere(tmp_path: Path) -> None:
    code = (
        "import sys; from framework import cli; code = cli.run(sys.argv[1:]);"
        "sys.exit(100 if 'torch' in sys.modules else code)"
    )
    command = [sys.executable, "-c", code, *write(tmp_path, RECORD, RECORD), "--json"]
    environment = {"PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=30
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "fixture": "case",
        "verdict": "PASS",
        "compared": 4,
        "informed": 0,
        "ignored": 0,
        "seconds": 0.0,
        "findings": [],
    }


def test_a_difference_is_one_finding_with_its_explanation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = write(tmp_path, RECORD, changed([1, 9, 3]))
    assert cli.run([*arguments, "--json"]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding.keys() >= {"class", "path", "rule", "golden", "current", "error", "allowed", "message"}
    assert (finding["class"], finding["path"]) == ("TOKEN", 'requests["0"].generated_tokens[1]')
    assert cli.run(arguments) == 1
    text = capsys.readouterr().out
    assert "FAIL case: 4 compared" in text
    assert "current: 1 >9< 3" in text


def test_numbers_json_cannot_hold_are_strings_in_the_document(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rules = "assert: {generated_logprobs: {atol: 1.0, rtol: 0.0}}\ninform: [counters, generated_tokens]\n"
    record = json.loads(json.dumps(RECORD))
    record["requests"]["0"]["generated_logprobs"] = [-1.0, float("nan")]
    assert cli.run([*write(tmp_path, record, record, rules), "--json"]) == 1

    def no_constant(name: str) -> None:
        raise AssertionError(name)

    document = json.loads(capsys.readouterr().out, parse_constant=no_constant)
    assert document["findings"][0]["class"] == "NON_FINITE"


def test_settings_that_differ_are_information(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden = RECORD | {"settings": {"mode": {"value": "legacy", "source": "default"}}}
    current = RECORD | {"settings": {"mode": {"value": "async", "source": "default"}}}
    assert cli.run(write(tmp_path, golden, current)) == 0
    assert "settings differ: mode: golden 'legacy', current 'async'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("golden", "rules", "code"),
    [
        ("{", RULES, 12),
        ("[]", RULES, 12),
        (RECORD, "assert: {}\n", 10),
        (RECORD, "assert: {generated_tokens: exakt}\n", 10),
        (RECORD, "assert: {a: exact, a: exact}\n", 10),
    ],
)
def test_what_cannot_be_judged_is_an_error_of_one_screen(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    golden: object,
    rules: str,
    code: int,
) -> None:
    arguments = write(tmp_path, golden, RECORD, rules)
    assert cli.run(arguments) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert str(tmp_path) in shown.err
    assert "Traceback" not in shown.err
    assert cli.run([*arguments, "--json"]) == code
    assert json.loads(capsys.readouterr().out)["exit_code"] == code


def test_a_missing_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = write(tmp_path, RECORD, RECORD)
    (tmp_path / "current.json").unlink()
    assert cli.run(arguments) == 12
    assert "current.json: no such file" in capsys.readouterr().err
