"""Flags of the command line for sampling, derived from the fields of `SamplingParams`, and what they make visible."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from engine.request import RequestOutput, SamplingParams, sampling_parameters
from engine.settings_cli import add_flag


def add_sampling_flags(parser: argparse.ArgumentParser) -> None:
    """Add one flag a sampling parameter; a flag that is not given leaves no trace."""
    group = parser.add_argument_group("sampling", "for every prompt")
    for parameter in sampling_parameters().values():
        if parameter.kind == "bool":
            group.add_argument(parameter.flag, action="store_true", default=argparse.SUPPRESS, help=parameter.help)
        else:
            add_flag(group, parameter)
    for flag, kind, metavar in (("--stop-token-id", int, "ID"), ("--stop-string", utf8_text, "TEXT")):
        group.add_argument(
            flag, type=kind, action="append", default=[], metavar=metavar, help="ends a request; may be repeated"
        )


def sampling_from_flags(arguments: argparse.Namespace) -> SamplingParams:
    """Return the sampling that the parsed flags ask for.

    Raises:
        ConfigError: for a value that is not allowed.
    """
    values: dict[str, Any] = {name: value for name, value in vars(arguments).items() if name in sampling_parameters()}
    return SamplingParams(
        **values,
        stop_token_ids=frozenset(arguments.stop_token_id),
        stop_strings=tuple(arguments.stop_string),
    )


def logprob_lines(output: RequestOutput, decode: Callable[[Sequence[int]], str]) -> Iterator[str]:
    """Yield a line for each token whose log-probability, or whose rivals, the request asked for."""
    for token_id, logprob in zip(output.prompt_token_ids[1:], output.prompt_logprobs or (), strict=False):
        yield f"prompt {decode([token_id])!r} {logprob:.4f}"
    for index, token_id in enumerate(output.generated_token_ids):
        logprobs = "" if output.generated_logprobs is None else f" {output.generated_logprobs[index]:.4f}"
        top = () if output.top_n_logprobs is None else output.top_n_logprobs[index]
        best = ", ".join(f"{decode([each.token_id])!r} {each.logprob:.4f}" for each in top)
        if logprobs or best:
            yield f"generated {decode([token_id])!r}{logprobs}{f'; best: {best}' if best else ''}"


def utf8_text(argument: str) -> str:
    """Return an argument of the command line; `ArgumentTypeError` if it was not text."""
    try:
        argument.encode()
    except UnicodeEncodeError as error:
        raise argparse.ArgumentTypeError(f"{argument!r} is not UTF-8; give the text as UTF-8") from error
    return argument
