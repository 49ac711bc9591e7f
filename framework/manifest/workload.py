"""The workload of a manifest: its prompts, from the manifest itself or from a file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from framework.errors import ManifestError
from framework.manifest.fixture import Prompt, Workload
from framework.manifest.schema import prompt_schema, violations
from framework.manifest.strict_yaml import Document
from framework.regular_file import TooLargeError, read_regular_file

MAXIMUM_PROMPT_FILE_BYTES: Final = 64_000_000
MAXIMUM_PROMPTS: Final = 100_000
MAXIMUM_RANDOM_TOKENS: Final = 1 << 24
_FLOATS: Final = ("temperature", "top_p", "min_p")
_FORMS: Final = ("text", "token_ids", "random")


def read_workload(document: Document, *, folder: Path, repository: Path) -> Workload:
    """Read the workload of a manifest that fits the schema.

    `folder` is the manifest's, from which a prompt file is found; it must lie in `repository`.

    Raises:
        ManifestError: a prompt is none, or the prompt file cannot be read.
    """
    written = document.value["workload"]
    place = ("workload",)
    mark = document.mark(place)
    if ("prompts" in written) == ("prompt_file" in written):
        where = f"{document.source}:{mark.line}:{mark.column}: workload"
        raise ManifestError(f"{where}: holds both or neither of prompts and prompt_file. Write one of them.")
    if "prompts" in written:
        prompts = tuple(
            _prompt(item, f"{document.source}:{document.mark(('workload', 'prompts', index)).line}: prompts[{index}]")
            for index, item in enumerate(written["prompts"])
        )
    else:
        line = document.mark(("workload", "prompt_file")).line
        prompts = _prompt_file(written["prompt_file"], f"{document.source}:{line}", folder, repository)
    _refuse_too_many_random_tokens(prompts, f"{document.source}:{mark.line}: workload")
    arrivals = written.get("arrivals", "all_at_start")
    return Workload(
        prompts=prompts,
        sampling=_sampling(written.get("sampling", {})),
        requests_per_step=None if isinstance(arrivals, str) else arrivals["requests_per_step"],
        repeats=written.get("repeats", 1),
    )


def _refuse_too_many_random_tokens(prompts: Iterable[Prompt], where: str) -> None:
    """Each prompt has a bound of its own; a short manifest of many could still ask for more than a memory holds."""
    total = sum(prompt.random_length or 0 for prompt in prompts)
    if total > MAXIMUM_RANDOM_TOKENS:
        raise ManifestError(
            f"{where}: its random prompts have {total:,} tokens in all, more than {MAXIMUM_RANDOM_TOKENS:,}. Shorten"
            " them, or split the fixture."
        )


def _prompt(item: Any, where: str) -> Prompt:
    if isinstance(item, str):
        return Prompt(text=item)
    forms = [form for form in _FORMS if form in item]
    if len(forms) != 1:
        found = " and ".join(forms) or "none of them"
        raise ManifestError(f"{where}: a prompt has exactly one of text, token_ids and random; this has {found}.")
    random = item.get("random", {})
    return Prompt(
        text=item.get("text"),
        token_ids=tuple(item["token_ids"]) if "token_ids" in item else None,
        random_length=random.get("length"),
        random_seed=random.get("seed"),
        sampling=_sampling(item.get("sampling", {})),
        arrival_step=item.get("arrival_step"),
    )


def _sampling(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return sampling parameters with floats as floats, so that `0` and `0.0` are the same fixture."""
    return {name: float(value) if name in _FLOATS else value for name, value in written.items()}


def _prompt_file(name: str, named_at: str, folder: Path, repository: Path) -> tuple[Prompt, ...]:
    path = folder / name
    try:
        if not path.resolve().is_relative_to(repository.resolve()):
            raise ManifestError(f"{named_at}: prompt_file: {name} leads out of the repository. Keep it inside.")
        text = read_regular_file(path, MAXIMUM_PROMPT_FILE_BYTES).decode("utf-8")
    except TooLargeError:
        limit = MAXIMUM_PROMPT_FILE_BYTES
        raise ManifestError(
            f"{named_at}: prompt_file: {name} is larger than {limit:,} bytes. Split the fixture."
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        reason = _why_unreadable(error)
        raise ManifestError(f"{named_at}: prompt_file: {name} cannot be read: {reason}.") from error
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line and not line.isspace()]
    if len(lines) > MAXIMUM_PROMPTS:
        raise ManifestError(
            f"{named_at}: prompt_file: {name} holds {len(lines):,} prompts, more than {MAXIMUM_PROMPTS:,}. Split the"
            " fixture."
        )
    where = f"{named_at}: prompt_file: {path.resolve().relative_to(repository.resolve()).as_posix()}"
    prompts = tuple(_prompt_line(line, f"{where}:{number}") for number, line in lines)
    if not prompts:
        raise ManifestError(f"{named_at}: prompt_file: {name} holds no prompt. Write one JSON value a line.")
    return prompts


def _why_unreadable(error: Exception) -> str | None:
    if isinstance(error, OSError):
        return error.strerror
    return "a link that leads to itself" if isinstance(error, RuntimeError) else "it is not UTF-8, or no file name"


def _prompt_line(line: str, where: str) -> Prompt:
    try:
        item = json.loads(line, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise ManifestError(f"{where}: not a line of JSON: {str(error)[:100]}.") from error
    for violation in violations(item, prompt_schema()):
        raise ManifestError(f"{where}: {violation.sentence()}")
    return _prompt(item, where)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise ValueError("a key stands twice in one map")
    return unique


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
