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
from engine.sampling_cli import add_sampling_flags, logprob_lines, sampling_from_flags, utf8_text
from engine.settings_cli import add_setting_flags, config_from_flags
from engine.stop_strings import StopStringSearch

if TYPE_CHECKING:
    from engine.engine import Engine

REQUEST_FAILED = 1
USAGE_ERROR = 2
BROKEN_PIPE = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 if a request failed, 2 if nothing could be started."""
    arguments = _parser().parse_args(argv)
    try:
        return _generate(arguments, config_from_flags(arguments), sampling_from_flags(arguments))
    except ConfigError as error:
        return _refuse(error)
    except BrokenPipeError:  # whoever read the text has enough of it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _generate(arguments: argparse.Namespace, config: InferenceConfig, sampling: SamplingParams) -> int:
    # A wrong flag is answered before torch is loaded, which takes seconds.
    from engine.engine import Engine  # noqa: PLC0415
    from engine.model import ModelError  # noqa: PLC0415
    from engine.numerics import NumericsError  # noqa: PLC0415

    if arguments.save_routing is not None and not config.moe_enable_routing_replay:
        raise ConfigError(
            "--save-routing needs moe_enable_routing_replay true, which needs async_sched_mode legacy; "
            "without it no routing is recorded"
        )
    try:
        engine = Engine.load(arguments.model, config)
    except (ModelError, NumericsError) as error:
        return _refuse(error)
    requests = [
        Request(str(index), tuple(engine.tokenizer.encode(prompt)), sampling)
        for index, prompt in enumerate(arguments.prompt)
    ]
    outputs = _stream(engine, requests, arguments.prompt)
    for output in outputs:
        for line in logprob_lines(output, engine.tokenizer.decode):
            print(f"[{output.request_id}] {line}")
    if arguments.save_routing is not None:
        saved = engine.save_routing(arguments.save_routing, outputs)
        print(f"\nrouting of {saved} request{'s' * (saved != 1)} saved to {arguments.save_routing}")
    engine.close()
    print(f"\n{engine.timing.summary()}", flush=True)
    return REQUEST_FAILED if any(output.finish_reason is FinishReason.ERROR for output in outputs) else 0


def _stream(engine: Engine, requests: Sequence[Request], prompts: Sequence[str]) -> list[RequestOutput]:
    """Print a single request token by token, several ones as each of them ends."""
    single = len(requests) == 1
    text, search = engine.tokenizer.stream(), StopStringSearch(requests[0].sampling.stop_strings)
    outputs: list[RequestOutput] = []
    if single:
        print(prompts[0], end="", flush=True)
    for events in engine.stream(requests):
        for _, sample in events.samples:
            if single:
                print(search.add(text.add(sample.token_id)), end="", flush=True)
        for output in events.finished:
            outputs.append(output)
            if output.error is not None:
                print(f"\nrequest {output.request_id} failed: {output.error}", file=sys.stderr)
            elif not single:
                print(f"[{output.request_id}] {prompts[int(output.request_id)]}{output.generated_text}\n")
    if single:
        print(search.rest())
    return outputs


def _refuse(error: Exception) -> int:
    print(f"error: {error}", file=sys.stderr)
    return USAGE_ERROR


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine", description=__doc__, allow_abbrev=False)
    generate = parser.add_subparsers(required=True, metavar="COMMAND").add_parser(
        "generate", help="generate from prompts", allow_abbrev=False
    )
    generate.add_argument("--model", type=Path, required=True, metavar="DIR", help="model in Hugging Face layout")
    generate.add_argument(
        "--prompt", type=utf8_text, action="append", required=True, metavar="TEXT", help="may be given several times"
    )
    generate.add_argument(
        "--save-routing",
        type=Path,
        metavar="FILE",
        help="write which experts every token went to, for routing_replay_path",
    )
    add_sampling_flags(generate)
    add_setting_flags(generate)
    return parser
