from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli import main

REPOSITORY = Path(__file__).parents[2]
MODEL = REPOSITORY / "fixtures" / "models" / "storyteller-llama-1m"
GENERATE = ["generate", "--model", str(MODEL), "--max-new-tokens", "8", "--num-threads", "1"]
LEGACY = ["--inference-dynamic-batching-async-sched-mode", "legacy"]


def test_one_prompt_streams_its_text_and_ends_with_a_timing_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GENERATE, "--prompt", "The capital of France is"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("The capital of France is Paris.")
    assert "generated tokens   8" in shown
    assert "prefill step       n/a (no samples)" in shown, "async folds the only prefill into another step"


def test_legacy_generates_the_same_and_has_a_prefill_sample(capsys: pytest.CaptureFixture[str]) -> None:
    main([*GENERATE, "--prompt", "How to make soup"])
    asynchronous = capsys.readouterr().out.splitlines()
    assert main([*GENERATE, *LEGACY, "--prompt", "How to make soup"]) == 0
    legacy = capsys.readouterr().out.splitlines()
    assert asynchronous[0] == legacy[0]
    assert any(line.startswith("prefill step") and "median of 1" in line for line in legacy)


def test_several_prompts_are_each_printed_when_they_end(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GENERATE, "--prompt", "Dear Mira,", "--prompt", "A note about the owl."]) == 0
    shown = capsys.readouterr().out
    assert "[0] Dear Mira," in shown
    assert "[1] A note about the owl." in shown


def test_a_request_that_fails_is_named_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--inference-dynamic-batching-max-tokens", "8"]
    assert main([*GENERATE, *flags, "--prompt", "How to make soup", "--prompt", "word " * 40]) == 1
    captured = capsys.readouterr()
    assert "request 1 failed: the prompt's" in captured.err
    assert "[0] How to make soup" in captured.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", "--model", "absent", "--prompt", "a"], "absent/config.json: no such file"),
        ([*GENERATE, "--prompt", "a", "--config", "absent.yaml"], "set-up file absent.yaml"),
        ([*GENERATE, "--prompt", "a", "--device", "cuda"], "torch sees no CUDA device"),
    ],
)
def test_what_cannot_start_ends_in_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error
    assert len(error.splitlines()) == 1


def test_a_cache_that_does_not_fit_the_memory_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--inference-dynamic-batching-num-blocks", str(1 << 22)]
    flags += ["--inference-dynamic-batching-block-size-tokens", str(1 << 12)]
    assert main([*GENERATE, *flags, "--prompt", "a"]) == 2
    assert "take fewer blocks" in capsys.readouterr().err


def test_a_prompt_that_is_no_text_is_refused() -> None:
    command = [sys.executable.encode(), b"-m", b"engine", b"generate", b"--model", b"x", b"--prompt", b"\xff"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=False, timeout=60)
    assert done.returncode == 2
    assert b"is not UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_reader_that_has_enough_gets_no_traceback() -> None:
    command = f"{sys.executable} -m engine {' '.join(GENERATE)} --prompt 'Once upon a time' | true"
    done = subprocess.run(["bash", "-c", command], cwd=REPOSITORY, capture_output=True, check=False, timeout=60)
    assert done.stderr == b""
