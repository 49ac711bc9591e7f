"""What an adapter returned, checked once, where it comes back: whatever passes can be walked without a second look."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.errors import GoldenError
from framework.golden.codec import MAX_DEPTH, is_nested_too_deeply
from framework.golden.document import RECORD_SCHEMA, require_record, require_settings

if TYPE_CHECKING:
    from framework.manifest.fixture import Fixture

_REQUIRED_SECTIONS = ("settings", "environment")


class MalformedRecordError(Exception):
    """The adapter returned something that is no record of this fixture; the message says why."""


def checked_record(returned: Any, fixture: Fixture) -> dict[str, Any]:
    """Return the record as JSON has it, so that it is the same whether or not it crossed a process border.

    A request that is missing, and every value inside a request, is the comparison's to judge, `margins` apart: only
    proofs read them, as a list of numbers.

    Raises:
        MalformedRecordError: it is no record of this fixture.
    """
    try:
        text = json.dumps(returned)
    except (TypeError, ValueError, RecursionError) as error:
        raise MalformedRecordError(f"it cannot be written as JSON: {error}") from None
    if is_nested_too_deeply(text.encode()):
        raise MalformedRecordError(f"it is nested more than {MAX_DEPTH} levels deep")
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("schema") != RECORD_SCHEMA:
        schema = document.get("schema") if isinstance(document, dict) else None
        raise MalformedRecordError(f"it is no {RECORD_SCHEMA}: its schema is {schema!r}")
    try:
        require_record(document, Path(fixture.name))
        for section in _REQUIRED_SECTIONS:
            if section not in document:
                raise MalformedRecordError(f'"{section}" is missing')
        require_settings(document, Path(fixture.name))
    except GoldenError as error:
        raise MalformedRecordError(str(error)) from None
    if document.get("fixture") != fixture.name:
        raise MalformedRecordError(f'"fixture" is {document.get("fixture")!r}, expected {fixture.name!r}')
    _check_requests(document["requests"], len(fixture.workload.prompts))
    return document


def _check_requests(requests: dict[str, dict[str, Any]], count: int) -> None:
    known = {str(index) for index in range(count)}
    for request_id, request in requests.items():
        if request_id not in known:
            raise MalformedRecordError(f"it has a request {request_id!r}; the workload has 0 to {count - 1}")
        margins = request.get("margins", [])
        if not isinstance(margins, list) or not all(type(margin) in (int, float) for margin in margins):
            raise MalformedRecordError(f'requests["{request_id}"].margins is not a list of numbers')
