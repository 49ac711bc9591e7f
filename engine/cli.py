"""`python -m engine generate`: stream text from a model directory and end with a timing summary."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engine.config import ConfigError, InferenceConfig
from engine.request import FinishReason, Request, RequestOutput, SamplingParams
from engine.settings_cli import add_setting_flags, config_from_flags

if TYPE_CHECKING:
    from engine.engine import Engine

REQUEST_FAILED = 1
USAGE_ERROR = 2
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 if a request failed, 2 if nothing could be started."""
    arguments = _parser().parse_args(argv)
    try:
        return _generate(arguments, config_from_flags(arguments))
    except ConfigError as error:
        return _refuse(error)
    except BrokenPipeError:  # whoever read the text has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _generate(arguments: argparse.Namespace, config: InferenceConfig) -> int:
    # A wrong flag is answered before torch is loaded, which takes seconds.
    from engine.engine import Engine  # noqa: PLC0415
    from engine.model import ModelError  # noqa: PLC0415
    from engine.numerics import NumericsError  # noqa: PLC0415

    try:
        engine = Engine.load(arguments.model, config)
    except (ModelError, NumericsError) as error:
        return _refuse(error)
    sampling = SamplingParams(
        max_new_tokens=arguments.max_new_tokens,
        stop_token_ids=frozenset(arguments.stop_token_id),
        ignore_eos=arguments.ignore_eos,
    )
    requests = [
        Request(str(index), tuple(engine.tokenizer.encode(prompt)), sampling)
        for index, prompt in enumerate(arguments.prompt)
    ]
    outputs = _stream(engine, requests, arguments.prompt)
    engine.close()
    print(f"\n{engine.timing.summary()}", flush=True)
    return REQUEST_FAILED if any(output.finish_reason is FinishReason.ERROR for output in outputs) else 0


def _stream(engine: Engine, requests: Sequence[Request], prompts: Sequence[str]) -> list[RequestOutput]:
    """Print a single request token by token, several ones as each of them ends."""
    single = len(requests) == 1
    text = engine.tokenizer.stream()
    outputs: list[RequestOutput] = []
    if single:
        print(prompts[0], end="", flush=True)
    for events in engine.stream(requests):
        for _, sample in events.samples:
            if single:
                print(text.add(sample.token_id), end="", flush=True)
        for output in events.finished:
            outputs.append(output)
            if output.error is not None:
                print(f"\nrequest {output.request_id} failed: {output.error}", file=sys.stderr)
            elif not single:
                print(f"[{output.request_id}] {prompts[int(output.request_id)]}{output.generated_text}\n")
    if single:
        print()
    return outputs


def _refuse(error: Exception) -> int:
    print(f"error: {error}", file=sys.stderr)
    return USAGE_ERROR


def _text(argument: str) -> str:
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{argument!r} is not UTF-8; give the prompt as UTF-8 text") from error
    return argument


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description=__doc__, allow_abbrev=False)
    generate = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "generate", help="generate from prompts", allow_abbrev=False
    )
    generate.add_argument("--model", type=Path, required=True, metavar="DIR", help="model in Hugging Face layout")
    generate.add_argument(
        "--prompt", type=_text, action="append", required=True, metavar="TEXT", help="may be given several times"
    )
    generate.add_argument("--max-new-tokens", type=int, default=64, metavar="N", help="default: 64")
    generate.add_argument(
        "--stop-token-id", type=int, action="append", default=[], metavar="ID", help="ends a request; may be repeated"
    )
    generate.add_argument("--ignore-eos", action="store_true", help="go on past the model's end of sequence")
    add_setting_flags(generate)
    return parser
