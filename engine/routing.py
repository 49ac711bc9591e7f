"""Recordings of which experts tokens went to: a versioned file, read strictly, written in one step. No torch here.

A recording holds, for each request, its prompt and one row a token: row t is the token at position t, and a row has the
expert ids of each layer with experts, in the order in which they were chosen, best first. The last generated token has
no row, since it was never computed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from engine.config import ConfigError
from engine.request import Request, RequestOutput
from engine.text_file import read_text_file

SCHEMA = "engine.routing/1"
MAXIMUM_BYTES = 256_000_000
_KEYS = ("schema", "model_sha256", "num_experts", "requests")
_REQUEST_KEYS = ("prompt_tokens", "routing_indices")

Row: TypeAlias = Sequence[Sequence[int]]
"""One token's expert ids: a list for each layer with experts."""


class RoutedShape(Protocol):
    """What a recording must know of a model."""

    @property
    def layers(self) -> Sequence[int]:
        """The layers with experts."""

    @property
    def num_experts(self) -> int:
        """Experts a layer."""

    @property
    def experts_per_token(self) -> int:
        """Experts a token is sent to."""


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """The prompt and the rows of one request."""

    prompt_token_ids: tuple[int, ...]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Recording:
    """The routing of some requests.

    Attributes:
        source: where it was read, for messages.
        model_sha256: the model it was recorded with, as `engine.model.identity` hashes it.
        num_experts: experts a layer of that model.
        requests: by request id.
    """

    source: Path
    model_sha256: str
    num_experts: int
    requests: Mapping[str, RecordedRequest]

    def refusal(self, request: Request) -> str | None:
        """Return why the request cannot be replayed, or None if it can."""
        if self._find(request) is not None:
            return None
        own = self.requests.get(request.request_id)
        known = f"it has {len(self.requests)} requests with other prompts"
        if own is not None:
            pairs = zip(own.prompt_token_ids, request.prompt_token_ids, strict=False)
            place = next((index for index, (a, b) in enumerate(pairs) if a != b), None)
            place = min(len(own.prompt_token_ids), len(request.prompt_token_ids)) if place is None else place
            known = f"its request {request.request_id!r} has another prompt, from token {place} on"
        return (
            f"the recording {self.source} cannot be replayed for request {request.request_id!r}: {known}; replay what "
            "was recorded, or record again"
        )

    def outgrown(self, request: Request, length: int) -> str | None:
        """Return why a sequence of `length` tokens cannot go on: its last token has no recorded row. Else None."""
        rows = self.rows(request)
        if len(rows) >= length:
            return None
        return (
            f"the recording {self.source} has {len(rows)} rows for this request, none for the token at position "
            f"{length - 1}: the replay went on after the recorded run had ended; record again with as many new tokens"
        )

    def rows(self, request: Request) -> Sequence[Row]:
        """Return the rows of a request that is not refused."""
        found = self._find(request)
        assert found is not None, "a request without a recording is refused"
        return found.rows

    def _find(self, request: Request) -> RecordedRequest | None:
        """The request's own recording, or that of its prompt: an id is a place in a list that may be reordered."""
        own = self.requests.get(request.request_id)
        if own is not None and own.prompt_token_ids == request.prompt_token_ids:
            return own
        same = (each for each in self.requests.values() if each.prompt_token_ids == request.prompt_token_ids)
        return next(same, None)


def load_recording(path: Path, shape: RoutedShape, model_sha256: str) -> Recording:
    """Read a recording and check that it fits a model.

    Raises:
        ConfigError: it cannot be read, has another version, or does not fit; names file, request and row.
    """
    document = _read(path)
    if document.get("schema") != SCHEMA:
        raise _wrong(path, f"schema is {document.get('schema')!r}, but this engine reads {SCHEMA!r}")
    _require_keys(path, "the recording", document, _KEYS)
    if document["model_sha256"] != model_sha256:
        raise _wrong(
            path,
            f"it was recorded with another model (model_sha256 {_short(document['model_sha256'])}, this model has "
            f"{_short(model_sha256)})",
        )
    if document["num_experts"] != shape.num_experts:
        raise _wrong(path, f"num_experts is {document['num_experts']!r}, but the model has {shape.num_experts}")
    if not isinstance(document["requests"], dict) or not document["requests"]:
        raise _wrong(path, "requests must be an object with at least one request")
    return Recording(path, model_sha256, shape.num_experts, check_requests(path, document["requests"], shape))


def check_requests(path: Path, requests: Mapping[str, Any], shape: RoutedShape) -> dict[str, RecordedRequest]:
    """Return the requests of the file at `path`, each with `prompt_tokens` and `routing_indices`, if they fit a model.

    Raises:
        ConfigError: one of them does not; names it and its row.
    """
    return {name: _request(path, name, value, shape) for name, value in requests.items()}


def save_recording(path: Path, outputs: Iterable[RequestOutput], num_experts: int, model_sha256: str) -> int:
    """Write the routing of the requests that have any, and return how many these are; the file appears in one step.

    Raises:
        ConfigError: the file cannot be written.
    """
    requests = {
        output.request_id: {"prompt_tokens": output.prompt_token_ids, "routing_indices": output.routing_indices}
        for output in outputs
        if output.routing_indices
    }
    write_recording(path, requests, num_experts, model_sha256)
    return len(requests)


def write_recording(path: Path, requests: Mapping[str, Any], num_experts: int, model_sha256: str) -> None:
    """Write a recording from requests with `prompt_tokens` and `routing_indices`; the file appears in one step.

    Raises:
        ConfigError: the file cannot be written.
    """
    document = {"schema": SCHEMA, "model_sha256": model_sha256, "num_experts": num_experts, "requests": requests}
    part = path.with_name(f".{path.name}.part")
    try:
        part.write_text(_as_text(document), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise ConfigError(
            f"{path}: cannot be written: {error.strerror}; name a file in a folder that is there"
        ) from None


def _as_text(document: Mapping[str, Any]) -> str:
    """JSON with one token's row a line, so that a difference between recordings can be read."""
    lines = [f'"{name}": {json.dumps(document[name])},' for name in _KEYS[:-1]]
    requests = []
    for name, request in document["requests"].items():
        rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in request["routing_indices"])
        prompt = json.dumps(list(request["prompt_tokens"]))
        requests.append(f'{json.dumps(name)}: {{\n"prompt_tokens": {prompt},\n"routing_indices": [\n{rows}\n]\n}}')
    return "{\n" + "\n".join(lines) + '\n"requests": {\n' + ",\n".join(requests) + "\n}\n}\n"


def _read(path: Path) -> dict[str, Any]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) != len(pairs):
            raise ValueError("a key stands there twice")
        return members

    try:
        value = json.loads(read_text_file(path, MAXIMUM_BYTES), object_pairs_hook=unique)
    except OSError as error:
        raise _wrong(path, f"cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"is not JSON that can be read: {error}") from None
    if not isinstance(value, dict):
        raise _wrong(path, "the top level must be an object")
    return value


def _request(path: Path, name: str, value: Any, shape: RoutedShape) -> RecordedRequest:
    where = f"request {name!r}"
    if not isinstance(value, dict):
        raise _wrong(path, f"{where} must be an object")
    _require_keys(path, where, value, _REQUEST_KEYS)
    prompt, rows = value["prompt_tokens"], value["routing_indices"]
    if not isinstance(prompt, list) or not prompt or not all(type(token) is int and token >= 0 for token in prompt):
        raise _wrong(path, f"{where}: prompt_tokens must be a list of token ids")
    if not isinstance(rows, list) or len(rows) < len(prompt):
        count = len(rows) if isinstance(rows, list) else "no"
        raise _wrong(path, f"{where}: there are {count} rows for {len(prompt)} prompt tokens; each token has its row")
    for index, row in enumerate(rows):
        problem = _problem_of_row(row, shape)
        if problem is not None:
            raise _wrong(path, f"{where}: routing_indices[{index}] {problem}")
    return RecordedRequest(tuple(prompt), rows)


def _problem_of_row(row: Any, shape: RoutedShape) -> str | None:
    layers, count = len(shape.layers), shape.experts_per_token
    if not isinstance(row, list) or len(row) != layers:
        return f"must have {layers} lists, one for each layer with experts"
    for layer, ids in enumerate(row):
        if not isinstance(ids, list) or len(ids) != count or not all(type(expert) is int for expert in ids):
            return f"[{layer}] must have {count} expert ids"
        wrong = next((expert for expert in ids if not 0 <= expert < shape.num_experts), None)
        if wrong is not None:
            return f"[{layer}] names expert {wrong}, but there are 0 to {shape.num_experts - 1}"
        if len(set(ids)) != count:
            return f"[{layer}] names one expert twice: {ids}"
    return None


def _require_keys(path: Path, where: str, value: Mapping[str, Any], keys: Sequence[str]) -> None:
    missing = [key for key in keys if key not in value]
    extra = [key for key in value if key not in keys]
    if missing or extra:
        what = f"{missing[0]} is missing" if missing else f"{extra[0]!r} is not known"
        raise _wrong(path, f"{where}: {what}; it has {', '.join(keys)}")


def _short(digest: Any) -> str:
    return f"{digest[:12]}…" if isinstance(digest, str) else repr(digest)


def _wrong(path: Path, why: str) -> ConfigError:
    return ConfigError(
        f"setting routing_replay_path: {path}: {why}; give it a recording of this model, made with "
        "`python -m engine generate … --save-routing FILE`"
    )
