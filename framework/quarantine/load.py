"""From `quarantine.yaml` to a `Quarantine`."""

from __future__ import annotations

import functools
import json
from datetime import date
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from framework.compare.finding import FindingClass
from framework.errors import ManifestError
from framework.manifest.schema import Schema, refusals, violations
from framework.manifest.strict_yaml import load_bytes, read_bounded
from framework.quarantine.entry import NO_QUARANTINE, Entry, Quarantine

if TYPE_CHECKING:
    from pathlib import Path

    from framework.manifest.strict_yaml import Document

QUARANTINE_FILE: Final = "quarantine.yaml"
"""The name of the file, beside `fixtures/` and `goldens/`."""


def load_quarantine(root: Path) -> Quarantine:
    """Load the quarantine of a root; without the file there is none.

    What is wrong with entries that can be read (an end that has come, a fixture that is unknown) is for
    `framework.quarantine.lint`.

    Raises:
        ManifestError: the file is no quarantine; the message names file, line, what is wrong and the way out.
    """
    path = root / QUARANTINE_FILE
    if not path.exists() and not path.is_symlink():
        return NO_QUARANTINE
    if path.is_symlink():
        raise ManifestError(f"{QUARANTINE_FILE}: a link. Put the file itself there, so that its history is that of it.")
    return parse_quarantine(read_bounded(path, QUARANTINE_FILE), source=QUARANTINE_FILE)


def parse_quarantine(data: bytes, *, source: str) -> Quarantine:
    """Read a quarantine from the bytes of its file; `source` names it in errors.

    Raises:
        ManifestError: it is no quarantine; the message names file, line, what is wrong and the way out.
    """
    document = load_bytes(data, source=source)
    messages = refusals(document, violations(document.value, quarantine_schema()))
    if messages:
        raise ManifestError("\n".join(messages))
    entries = enumerate(document.value["entries"])
    return Quarantine(tuple(_entry(document, index, written) for index, written in entries))


@functools.cache
def quarantine_schema() -> Schema:
    """Return the JSON Schema of `quarantine.yaml`."""
    text = resources.files("framework.quarantine").joinpath("quarantine.schema.json").read_text("utf-8")
    schema: Schema = json.loads(text)
    return schema


def _entry(document: Document, index: int, written: dict[str, Any]) -> Entry:
    kinds = [written["class"]] if isinstance(written["class"], str) else written["class"]
    return Entry(
        fixture=written["fixture"],
        platforms=tuple(written["platforms"]),
        classes=tuple(FindingClass(kind) for kind in kinds),
        owner=written["owner"].strip(),
        issue=written["issue"].strip(),
        since=_day(document, index, "since"),
        expires=_day(document, index, "expires"),
        line=document.mark(("entries", index)).line,
    )


def _day(document: Document, index: int, key: str) -> date:
    place = ("entries", index, key)
    text = document.value["entries"][index][key]
    try:
        return date.fromisoformat(text)
    except ValueError:
        mark = document.mark(place)
        raise ManifestError(
            f'{document.source}:{mark.line}:{mark.column}: entries[{index}].{key} is "{text}", and there is no such'
            " day. Write one of the calendar."
        ) from None
