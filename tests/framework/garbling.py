"""Ways to garble a text or a document, chosen by a seeded generator: what a disk, a merge or a hand does to a file."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

SNIPPETS = (
    "NaN",
    "-Infinity",
    "1e400",
    "-0.0",
    "9" * 5000,
    "0x1F",
    "010",
    "12:30:45",
    "1_000",
    "2026-01-01",
    "no",
    "on: off",
    "~",
    "null",
    "''",
    '"\\ud800"',
    '"\\u0000"',
    "\u2028",
    "\x1e",
    "\x1b[2J",
    "\ufeff",
    "\t",
    "\r\n",
    "\r",
    "[" * 2000,
    "{a: " * 500,
    "[" * 100_000,
    "- " * 1500,
    "&a [*a, *a]",
    "a: &a [b]\nc: &c [*a, *a]\nd: &d [*c, *c]",
    "<<: *missing",
    "*missing",
    "!!python/object/apply:os.system [echo]",
    "!binary x",
    "%YAML 1.1\n---\n",
    "---\n",
    "...\n",
    "? [1, 2]\n: 3",
    "<<<<<<< ours\n=======\n>>>>>>> theirs\n",
    "{}",
    "[]",
    ",",
    ":",
    "}",
    '"',
    "|\n",
    "# ",
    "🙂",
    "e\u0301",
)
"""Texts that mean something to a reader of YAML or JSON, or should mean nothing."""

VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.0,
    2**70,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "1",
    "nan",
    "\ud800",
    "../../etc",
    "a" * 300,
    "\x1b[31m",
    [],
    [[]],
    [None],
    {},
    {"": 1},
    {"value": 1, "source": "default"},
    {"token_id": 1, "logprob": True},
    "exact",
    {"atol": -1, "rtol": 0},
    {"ratio": [1]},
)


def garbled_text(text: str, generator: random.Random) -> bytes:
    """Return a text with one to three changes, as bytes."""
    data = text.encode("utf-8", "surrogatepass")
    for _ in range(generator.randint(1, 3)):
        data = generator.choice(_TEXT_CHANGES)(data, generator)
    return data


def garbled_document(document: Any, generator: random.Random) -> Any:
    """Return a JSON value with one to three of its parts replaced, dropped, doubled or renamed."""
    changed = copy.deepcopy(document)
    for _ in range(generator.randint(1, 3)):
        changed = _change_somewhere(changed, generator)
    return changed


def json_text(document: Any) -> str:
    """Return a document as JSON, NaN and infinities included."""
    return json.dumps(document, indent=2)


def _change_somewhere(value: Any, generator: random.Random) -> Any:
    if not isinstance(value, dict | list) or not value or generator.random() < 0.15:
        return copy.deepcopy(generator.choice(VALUES))
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = generator.choice(keys)
    kind = generator.random()
    if kind < 0.7:
        value[key] = _change_somewhere(value[key], generator)
    elif kind < 0.8:
        del value[key]
    elif isinstance(value, list):
        value.insert(generator.randint(0, len(value)), copy.deepcopy(value[key]))
    else:
        value[generator.choice((f"{key}x", "", "*", "a.b", "\ud800", "[0]"))] = copy.deepcopy(value[key])
    return value


def _place(data: bytes, generator: random.Random) -> int:
    return generator.randint(0, len(data))


def _truncate(data: bytes, generator: random.Random) -> bytes:
    return data[: _place(data, generator)]


def _insert(data: bytes, generator: random.Random) -> bytes:
    place = _place(data, generator)
    return data[:place] + generator.choice(SNIPPETS).encode("utf-8", "surrogatepass") + data[place:]


def _flip(data: bytes, generator: random.Random) -> bytes:
    if not data:
        return data
    place = generator.randrange(len(data))
    return data[:place] + bytes([generator.randrange(256)]) + data[place + 1 :]


def _noise(data: bytes, generator: random.Random) -> bytes:
    return generator.randbytes(generator.randint(0, 60)) if generator.random() < 0.3 else _flip(data, generator)


def _by_lines(change: Callable[[list[bytes], random.Random], None]) -> Callable[[bytes, random.Random], bytes]:
    def changed(data: bytes, generator: random.Random) -> bytes:
        lines = data.splitlines(keepends=True)
        if lines:
            change(lines, generator)
        return b"".join(lines)

    return changed


def _double_line(lines: list[bytes], generator: random.Random) -> None:
    place = generator.randrange(len(lines))
    lines.insert(place, lines[place])


def _drop_line(lines: list[bytes], generator: random.Random) -> None:
    del lines[generator.randrange(len(lines))]


def _swap_lines(lines: list[bytes], generator: random.Random) -> None:
    one, other = generator.randrange(len(lines)), generator.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def _indent_line(lines: list[bytes], generator: random.Random) -> None:
    place = generator.randrange(len(lines))
    lines[place] = generator.choice((b" ", b"  ", b"\t")) + lines[place]


def _replace_value(lines: list[bytes], generator: random.Random) -> None:
    place = generator.randrange(len(lines))
    name, colon, _ = lines[place].partition(b":")
    lines[place] = name + colon + b" " + generator.choice(SNIPPETS).encode("utf-8", "surrogatepass") + b"\n"


def _crlf(data: bytes, generator: random.Random) -> bytes:
    del generator
    return data.replace(b"\n", b"\r\n")


def _marked(data: bytes, generator: random.Random) -> bytes:
    return generator.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\x00")) + data


_TEXT_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _truncate,
    _insert,
    _insert,
    _flip,
    _noise,
    _by_lines(_double_line),
    _by_lines(_drop_line),
    _by_lines(_swap_lines),
    _by_lines(_indent_line),
    _by_lines(_replace_value),
    _by_lines(_replace_value),
    _crlf,
    _marked,
)
