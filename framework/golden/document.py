"""The shape of a record and of a golden, and how the one becomes the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.compare.rules import Treatment
from framework.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from framework.compare.rules import Rules

RECORD_SCHEMA = "golden.record/1"
GOLDEN_SCHEMA = "golden.golden/1"

_ALWAYS_KEPT = frozenset({"prompt_tokens", "margins"})
_JUDGED_SECTIONS = ("counters", "performance")
_SECTIONS = ("counters", "performance", "settings", "environment")
_GOLDEN_KEYS: dict[str, type] = {
    "fixture": str,
    "platform": str,
    "settings": dict,
    "environment": dict,
    "hashes": dict,
    "manifest_sha256": str,
    "provenance": dict,
    "seal": str,
}


def require_record(document: Any, path: Path) -> dict[str, Any]:
    """Return the document if it has the outer shape of a record or a golden.

    Only what a comparison needs in order to walk is asked for here; everything inside the requests is the comparison's
    to judge.

    Raises:
        GoldenError: it has not; the message says what is wrong.
    """
    complain = _complaint(path, "not a record")
    if not isinstance(document, dict):
        raise complain(f"the top level is {_json_type(document)}, not an object")
    schema = document.get("schema")
    if schema not in (RECORD_SCHEMA, GOLDEN_SCHEMA):
        raise complain(f'"schema" is {schema!r}, expected "{RECORD_SCHEMA}" or "{GOLDEN_SCHEMA}"')
    requests = document.get("requests")
    if not isinstance(requests, dict):
        raise complain(f'"requests" is {_json_type(requests)}, not an object of requests by id')
    for request_id, request in requests.items():
        if not isinstance(request, dict):
            raise complain(f'"requests" holds {_json_type(request)} for {request_id!r}, not an object')
    for section in _SECTIONS:
        if section in document and not isinstance(document[section], dict):
            raise complain(f'"{section}" is {_json_type(document[section])}, not an object')
    return document


def require_golden(document: Any, path: Path) -> dict[str, Any]:
    """Return the document if it has the outer shape of a golden.

    Raises:
        GoldenError: it has not; the message says what is wrong.
    """
    record = require_record(document, path)
    complain = _complaint(path, "not a golden")
    if record["schema"] != GOLDEN_SCHEMA:
        raise complain(f'"schema" is {record["schema"]!r}, expected "{GOLDEN_SCHEMA}"')
    for key, kind in _GOLDEN_KEYS.items():
        if not isinstance(record.get(key), kind):
            raise complain(f'"{key}" is {_json_type(record.get(key))}, expected {_TYPE_WORDS[kind]}')
    require_settings(record, path)
    return record


def require_settings(document: Mapping[str, Any], path: Path) -> None:
    """Ask that each of a document's settings is a value with its source.

    Raises:
        GoldenError: one of them is not.
    """
    complain = _complaint(path, "malformed")
    for name, setting in document["settings"].items():
        is_complete = isinstance(setting, dict) and "value" in setting and isinstance(setting.get("source"), str)
        if not is_complete or setting["source"] not in ("pinned", "default"):
            raise complain(f'the setting "{name}" is not a value with its source')


_TYPE_WORDS = {
    type(None): "absent or null",
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
}


def _json_type(value: Any) -> str:
    return _TYPE_WORDS[type(value)]


def _complaint(path: Path, kind: str) -> Callable[[str], GoldenError]:
    def complain(cause: str) -> GoldenError:
        return GoldenError(f"{path}: golden unreadable: {kind}: {cause}. Restore the file, or record it again.")

    return complain


def build_golden(
    record: Mapping[str, Any],
    rules: Rules,
    *,
    platform: str,
    hashes: Mapping[str, str],
    manifest_sha256: str,
    provenance: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the golden of a record, without its seal: what the rules assert, and what explains it.

    Nothing that no rule reads is kept, prompts and margins apart: values nobody compares only look like evidence.
    """
    golden: dict[str, Any] = {
        "schema": GOLDEN_SCHEMA,
        "fixture": record["fixture"],
        "platform": platform,
        "requests": {
            request_id: {name: value for name, value in request.items() if _is_kept(rules, name)}
            for request_id, request in record["requests"].items()
        },
        "settings": record["settings"],
        "environment": record["environment"],
        "hashes": dict(hashes),
        "manifest_sha256": manifest_sha256,
        "provenance": dict(provenance),
    }
    for section in _JUDGED_SECTIONS:
        entries = {
            name: value
            for name, value in record.get(section, {}).items()
            if rules.for_entry(section, name).treatment is Treatment.ASSERT
        }
        if entries:
            golden[section] = entries
    return golden


def stored_names(document: Mapping[str, Any]) -> frozenset[str]:
    """Return every per-request field, every section, and every `section.name` of those judged by name, in a golden."""
    fields = {name for request in document["requests"].values() for name in request}
    entries = {f"{section}.{name}" for section in _JUDGED_SECTIONS for name in document.get(section, {})}
    sections = {section for section in _SECTIONS if section in document}
    return frozenset(fields | entries | sections)


def _is_kept(rules: Rules, name: str) -> bool:
    return name in _ALWAYS_KEPT or rules.for_field(name).treatment is Treatment.ASSERT
