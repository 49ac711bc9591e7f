from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cli import main
from engine.request import SamplingParams, sampling_parameters
from engine.sampling_cli import add_sampling_flags, sampling_from_flags

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


def test_seeds_of_the_command_line_decide_what_is_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    texts = []
    for seed in ("1", "2", "1"):
        assert (
            main([*GENERATE, "--prompt", "Once upon a time there lived", "--temperature", "1.5", "--seed", seed]) == 0
        )
        texts.append(capsys.readouterr().out.splitlines()[0])
    assert texts[0] == texts[2] != texts[1]


@pytest.mark.parametrize("prompts", [["The capital of France is"], ["The capital of France is", "How to make soup"]])
def test_a_stop_string_is_never_shown(prompts: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    asked = [part for prompt in prompts for part in ("--prompt", prompt)]
    assert main([*GENERATE, *asked, "--stop-string", "is.", "--stop-string", "Paris, or not"]) == 0
    shown = capsys.readouterr().out
    assert "The capital of France is Par\n" in shown
    assert "Paris" not in shown


def test_what_may_begin_a_stop_string_is_shown_once_it_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GENERATE, "--prompt", "The capital of France is", "--stop-string", " Paris, or not"]) == 0
    assert capsys.readouterr().out.startswith("The capital of France is Paris.")


def test_log_probs_are_listed_behind_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--logprobs", "--prompt-logprobs", "--top-n", "2", "--max-new-tokens", "3"]
    assert main([*GENERATE, *flags, "--prompt", "The capital of France is"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("[0] ")]
    assert [line.split()[1] for line in lines] == ["prompt"] * 4 + ["generated"] * 3
    assert lines[0].startswith("[0] prompt ' capital' -")
    generated = re.fullmatch(
        r"\[0\] generated ' Paris' (-[0-9.]+); best: ' Paris' (-[0-9.]+), '.+' (-[0-9.]+)", lines[4]
    )
    assert generated is not None
    assert generated[1] == generated[2]


def test_no_new_tokens_scores_the_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*GENERATE, "--max-new-tokens", "0", "--prompt-logprobs", "--prompt", "The capital of France is"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The capital of France is"
    assert [line.split()[1] for line in lines[1:5]] == ["prompt"] * 4
    assert "generated tokens   0" in lines


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--temperature", "hot"], "argument --temperature: sampling temperature: 'hot' is not a number"),
        (["--top-p", "0"], "argument --top-p: sampling top_p: 0.0 is not above 0"),
        (["--top-k", "1.5"], "argument --top-k: sampling top_k: '1.5' is not a whole number"),
        (["--seed", "-1"], "argument --seed: sampling seed: -1 is below its minimum 0"),
        (["--min-p", "2"], "argument --min-p: sampling min_p: 2.0 is above its maximum 1"),
        (["--top-n", "5000"], "argument --top-n: sampling top_n: 5000 is above its maximum 1000"),
        (["--stop-token-id", "-4"], "error: sampling stop_token_ids: -4 is no token id"),
        (["--stop-string", ""], "error: sampling stop_strings: ''"),
    ],
)
def test_wrong_sampling_is_answered_with_its_reason(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code: object = main([*GENERATE, *flags, "--prompt", "a"])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    assert words in capsys.readouterr().err


def test_every_sampling_parameter_has_a_flag_and_its_default_has_one_place() -> None:
    parser = argparse.ArgumentParser()
    add_sampling_flags(parser)
    assert sampling_from_flags(parser.parse_args([])) == SamplingParams()
    text = parser.format_help()
    for parameter in sampling_parameters().values():
        assert f"--{parameter.name.replace('_', '-')} " in text.replace("\n", " ")


def test_routing_is_saved_and_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = str(MODEL.with_name("storyteller-moe-1m"))
    flags = ["generate", "--model", model, "--max-new-tokens", "5", "--num-threads", "1", *LEGACY]
    flags += ["--inference-dynamic-batching-moe-enable-routing-replay", "true", "--prompt", "How to make soup"]
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert main([*flags, "--save-routing", str(first)]) == 0
    assert f"routing of 1 request saved to {first}" in capsys.readouterr().out
    replay = ["--inference-dynamic-batching-routing-replay-path", str(first)]
    assert main([*flags, *replay, "--save-routing", str(second)]) == 0
    assert first.read_bytes() == second.read_bytes()
    assert main([*flags, *replay, "--prompt", "Zoë"]) == 1
    assert "request 1 failed: the recording" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--save-routing", "x.json"], "--save-routing needs moe_enable_routing_replay true"),
        (["--inference-dynamic-batching-moe-enable-routing-replay", "true"], "needs async_sched_mode 'legacy'"),
        (
            [*LEGACY, "--inference-dynamic-batching-moe-enable-routing-replay", "true"],
            "is a dense model (llama) without experts",
        ),
    ],
)
def test_routing_that_cannot_be_had_is_refused_before_weights_are_read(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*arguments: object, **settings: object) -> None:
        raise AssertionError("weights are read")

    monkeypatch.setattr("engine.engine.load_decoder", read)
    assert main([*GENERATE, *flags, "--prompt", "a"]) == 2
    assert words in capsys.readouterr().err


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
