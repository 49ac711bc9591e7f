"""JSON in and out: strict reading, and one canonical form for writing.

Reading refuses whatever two readers could understand differently (duplicate keys, a byte order mark, two documents)
and whatever a walker could fall over (unbounded nesting and digits), each with its cause and its file. NaN, Infinity
and 1e400 are read as floats, because a comparison must be able to find them. Writing gives the same bytes for the same
values, one number list a line, so that a changed golden reads well in a diff.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from framework.errors import GoldenError, MissingGoldenError
from framework.regular_file import TooLargeError, read_regular_file

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 64
_CROWDS = ((b"[", 4_000_000, "lists"), (b"{", 1_000_000, "objects"), (b'":', 2_000_000, "keys"))

_EXCEPT_BRACKETS_AND_QUOTES = bytes(sorted(set(range(256)) - set(b'[]{}"')))
_STRING = re.compile(rb'"[^"]*"')
_CONFLICT_MARKER = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7})(?: |$)", re.MULTILINE)
_CONFLICT_MARKER_BYTES = re.compile(_CONFLICT_MARKER.pattern.encode(), re.MULTILINE)
_NUMBER_TYPES = frozenset({int, float})


class _DuplicateKeyError(Exception):
    """An object names one key twice."""


def read_json(path: Path) -> Any:
    """Read one JSON document.

    Raises:
        GoldenError: the file is missing or cannot be understood in exactly one way; the message names path and cause.
    """
    return decode_json(read_bytes(path), path)


def read_bytes(path: Path) -> bytes:
    """Read a whole file, up to `MAX_BYTES`.

    Raises:
        GoldenError: the file is missing, not readable, or larger than that.
    """
    try:
        return read_regular_file(path, MAX_BYTES)
    except FileNotFoundError:
        raise MissingGoldenError(f"{path}: no such file; give the path of a golden or a record") from None
    except TooLargeError:
        raise unreadable(path, f"larger than {MAX_BYTES // 2**20} MB, the most that is read") from None
    except OSError as error:
        raise GoldenError(f"{path}: golden unreadable: {error.strerror or error}") from None
    except ValueError as error:
        raise GoldenError(f"{str(path)!r}: golden unreadable: {error}") from None


def decode_json(data: bytes, path: Path) -> Any:
    """Parse the bytes of the file `path`, with the strictness of `read_json`."""
    if not data.strip():
        raise unreadable(path, "the file is empty")
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise unreadable(path, "it starts with a byte order mark; save it as plain UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise unreadable(path, f"not UTF-8 at byte {error.start}") from None
    _refuse_crowded(data, path)
    if is_nested_too_deeply(data):
        raise unreadable(path, f"nested more than {MAX_DEPTH} levels deep")
    try:
        return json.loads(text, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise unreadable(path, _describe(error, text)) from None
    except _DuplicateKeyError as error:
        raise unreadable(path, f"the key {error.args[0]} stands twice in one object") from None
    except ValueError as error:
        raise unreadable(path, f"a number is too long ({error})") from None


def decode_canonical(data: bytes, path: Path) -> Any:
    """Parse bytes that are known to come from `canonical_bytes`, since their seal holds.

    What `decode_json` looks for cannot be in them, so a large golden takes no longer than its parsing.
    """
    _refuse_crowded(data, path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"sealed, yet not canonical ({error})") from None


def _refuse_crowded(data: bytes, path: Path) -> None:
    """Refuse bytes that would take many times their size as values: an empty list has two bytes here, and 64 there."""
    for sign, most, what in _CROWDS:
        if data.count(sign) > most:
            raise unreadable(path, f"more than {most:,} {what}, the most that are read")


def has_conflict_markers(data: bytes) -> bool:
    """Say whether a line of these bytes is one that a version control puts around a conflict."""
    return _CONFLICT_MARKER_BYTES.search(data) is not None


def unreadable(path: Path, cause: str) -> GoldenError:
    """Return the error for a file that is there but means nothing."""
    return GoldenError(
        f"{path}: golden unreadable: {cause}. Restore the file from version control, or record it again with"
        " `golden regen`.",
    )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) == len(pairs):
        return mapping
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _DuplicateKeyError(json.dumps(key))
        seen.add(key)
    raise AssertionError("fewer keys than pairs, yet none twice")


def _describe(error: json.JSONDecodeError, text: str) -> str:
    if (marker := _CONFLICT_MARKER.search(text)) is not None:
        line = text.count("\n", 0, marker.start()) + 1
        return (
            f"merge-conflict markers at line {line}: two branches recorded it, and goldens are never merged by lines."
            " Take either side whole, then run `golden regen --reason …` on the merged tree"
        )
    if error.msg == "Extra data":
        return f"a second document starts at line {error.lineno} column {error.colno}"
    at_end = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
    if at_end:
        return f"truncated at line {error.lineno} column {error.colno}"
    return f"not JSON at line {error.lineno} column {error.colno}: {error.msg}"


def is_nested_too_deeply(data: bytes) -> bool:
    """Say whether JSON text is nested more than `MAX_DEPTH` levels deep.

    This is found without recursion, so that hostile input cannot overflow a stack.

    Strings are cut out (their escaped quotes first), then one level of innermost brackets is removed a pass. Pairs that
    survive `MAX_DEPTH` passes are too deep, and so are more unmatched brackets than that; other input that does not
    match is left to the parser.
    """
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH:
        return False
    for escape in (b"\\\\", b'\\"'):
        data = data.replace(escape, b"")
    brackets = data.translate(None, _EXCEPT_BRACKETS_AND_QUOTES).replace(b'""', b"")
    brackets = _STRING.sub(b"", brackets)
    for _ in range(MAX_DEPTH):
        shorter = brackets.replace(b"[]", b"").replace(b"{}", b"")
        if len(shorter) == len(brackets):
            break
        brackets = shorter
    unmatched = brackets.count(b"[") + brackets.count(b"{")
    return unmatched > MAX_DEPTH or b"[]" in brackets or b"{}" in brackets


def canonical_bytes(value: Any) -> bytes:
    """Return the one canonical form of a JSON value.

    UTF-8 with ASCII escapes, LF, object keys sorted by code point, two blanks a level, a list of numbers (and an object
    of numbers inside a list) on one line, floats in their shortest form that reads back as the same bits, a final
    newline. Lone surrogates round-trip.

    Raises:
        ValueError: a NaN or an infinity, a type that JSON has not, or nesting deeper than can be read back.
    """
    lines: list[str] = []
    _write(value, "", 0, lines.append)
    lines.append("\n")
    return "".join(lines).encode("ascii")


def _write(value: Any, indent: str, depth: int, emit: Any) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    kind = type(value)
    if kind is dict and value:
        _write_object(value, indent, depth, emit)
    elif kind is list and value:
        _write_list(value, indent, depth, emit)
    elif kind in (dict, list):
        emit("{}" if kind is dict else "[]")
    else:
        emit(_scalar(value))


def _write_object(value: dict[str, Any], indent: str, depth: int, emit: Any) -> None:
    inner = indent + "  "
    separator = "{\n"
    for key in sorted(_string_keys(value)):
        emit(f"{separator}{inner}{json.dumps(key)}: ")
        _write(value[key], inner, depth + 1, emit)
        separator = ",\n"
    emit(f"\n{indent}}}")


def _write_list(value: list[Any], indent: str, depth: int, emit: Any) -> None:
    if _NUMBER_TYPES.issuperset(map(type, value)):
        emit(_one_line(value))
        return
    inner = indent + "  "
    separator = "[\n"
    for item in value:
        emit(separator + inner)
        if type(item) is dict and item and _NUMBER_TYPES.issuperset(map(type, item.values())):
            emit(_one_line(dict(sorted((key, item[key]) for key in _string_keys(item)))))
        else:
            _write(item, inner, depth + 1, emit)
        separator = ",\n"
    emit(f"\n{indent}]")


def _one_line(value: list[Any] | dict[str, Any]) -> str:
    return json.dumps(value, allow_nan=False)


def _string_keys(value: dict[str, Any]) -> list[str]:
    keys = list(value)
    if any(type(key) is not str for key in keys):
        raise ValueError("an object key is not a string")
    return keys


def _scalar(value: Any) -> str:
    if value is None or type(value) in (bool, int, str):
        return json.dumps(value)
    if type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{value} has no canonical form")
        return json.dumps(value)
    raise ValueError(f"{type(value).__name__} is no JSON type")


def non_finite_paths(value: Any) -> list[str]:
    """Return the dotted path of every NaN and infinity in a JSON value, in document order."""
    found: list[str] = []
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, node = stack.pop()
        if type(node) is float and not math.isfinite(node):
            found.append(path)
        elif isinstance(node, dict):
            stack.extend((f"{path}.{key}" if path else str(key), child) for key, child in reversed(node.items()))
        elif isinstance(node, list):
            stack.extend((f"{path}[{index}]", node[index]) for index in range(len(node) - 1, -1, -1))
    return found
