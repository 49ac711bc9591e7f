"""YAML as manifests and rules files use it: one document of plain data, with the position of every value.

The parser's events are read one by one into plain values, so that nothing is constructed before it has been checked:
no tags, no second document, no duplicate key, no merge key, no scalar with two meanings, bounded size, depth and
aliases. Every refusal is one `ManifestError` that names file, line, column and the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from framework.errors import ManifestError
from framework.manifest.yaml_scalars import AmbiguousScalarError, resolve_plain_scalar
from framework.regular_file import TooLargeError, read_regular_file

Key = str | int
Place = tuple[Key, ...]
"""Where a value stands: map keys and list indices from the top."""

MAXIMUM_BYTES: Final = 1_000_000
MAXIMUM_DEPTH: Final = 32
MAXIMUM_VALUES: Final = 100_000

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Mark(NamedTuple):
    """A position in a file, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML document: its value, and where each key and each value stands."""

    source: str
    value: Any
    keys: Mapping[Place, Mark]
    values: Mapping[Place, Mark]

    def lines(self) -> dict[str, int]:
        """Return the line of every entry by its dotted path, such as `workload.prompts[0].sampling`."""
        texts: dict[Place, str] = {(): ""}
        for place in self.keys:
            outer, last = texts[place[:-1]], place[-1]
            texts[place] = f"{outer}[{last}]" if isinstance(last, int) else f"{outer}.{last}" if outer else last
        return {texts[place]: mark.line for place, mark in self.keys.items()}

    def mark(self, place: Place) -> Mark:
        """Return where `place` begins, or the nearest thing around it that has a position."""
        while place not in self.values and place:
            place = place[:-1]
        return self.values.get(place, Mark(1, 1))


def dotted(place: Place) -> str:
    """Write `place` as a dotted path: `engine.max_tokens`, `workload.prompts[3]`."""
    text = ""
    for key in place:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def load_file(path: Path) -> Document:
    """Read the YAML document in the file `path`.

    Raises:
        ManifestError: the file cannot be read, or is not strict YAML.
    """
    return load_bytes(read_bounded(path, str(path)), source=str(path))


def read_bounded(path: Path, source: str) -> bytes:
    """Return the bytes of the file `path`; `source` names it in errors.

    Raises:
        ManifestError: the file cannot be read, is none, or is too large.
    """
    try:
        return read_regular_file(path, MAXIMUM_BYTES)
    except TooLargeError:
        raise _too_large(source) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ManifestError(f"{source}: cannot be read: {reason}.") from error


def load_bytes(data: bytes, *, source: str) -> Document:
    """Read the YAML document in `data`; `source` names it in errors.

    Raises:
        ManifestError: `data` is not strict YAML.
    """
    return _Reader(source, _decode(data, source)).document()


def _too_large(source: str) -> ManifestError:
    return ManifestError(f"{source}: larger than {MAXIMUM_BYTES:,} bytes. Move long workloads to a prompt_file.")


def _decode(data: bytes, source: str) -> str:
    if len(data) > MAXIMUM_BYTES:
        raise _too_large(source)
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise ManifestError(f"{source}:1:1: begins with a byte order mark. Save the file as UTF-8 without one.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = error.start - (before.rfind(b"\n") + 1) + 1
        raise ManifestError(f"{source}:{line}:{column}: not UTF-8. Save the file as UTF-8.") from error
    for number, line_text in enumerate(text.split("\n"), start=1):
        if line_text.startswith(("<<<<<<< ", ">>>>>>> ")):
            raise ManifestError(f"{source}:{number}:1: a merge-conflict marker. Resolve the conflict first.")
        for hidden in "\x85\u2028\u2029\ufeff":
            column = line_text.find(hidden) + 1
            if column:
                raise ManifestError(
                    f"{source}:{number}:{column}: the invisible character U+{ord(hidden):04X}. "
                    f'Remove it, or write it as "\\u{ord(hidden):04x}" inside double quotes.'
                )
    return text


@dataclass(slots=True)
class _Frame:
    """A collection that is being read. `key` is the map key that waits for its value at `value_place`."""

    place: Place
    value: dict[str, Any] | list[Any]
    anchor: str | None
    size_before: int
    key: str | None = None
    value_place: Place = ()


@dataclass(slots=True)
class _Reader:
    source: str
    text: str
    size: int = 0
    stack: list[_Frame] = field(default_factory=list)
    anchors: dict[str, tuple[Any, int]] = field(default_factory=dict)
    keys: dict[Place, Mark] = field(default_factory=dict)
    values: dict[Place, Mark] = field(default_factory=dict)
    roots: list[Any] = field(default_factory=list)

    def document(self) -> Document:
        parser = _Loader(self.text)
        try:
            while parser.check_event():
                self._read(parser.get_event())
        except yaml.MarkedYAMLError as error:
            raise self._syntax_error(error) from error
        except yaml.reader.ReaderError as error:
            line = self.text.count("\n", 0, error.position) + 1
            raise ManifestError(
                f"{self.source}:{line}: the control character {error.character!r}. Remove it."
            ) from error
        if not self.roots:
            raise ManifestError(f"{self.source}:1:1: empty. Write at least one key.")
        return Document(self.source, self.roots[0], self.keys, self.values)

    def _read(self, event: Any) -> None:
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._scalar(event)
        elif kind is yaml.MappingStartEvent:
            self._open(event, {})
        elif kind is yaml.SequenceStartEvent:
            self._open(event, [])
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            self._close()
        elif kind is yaml.AliasEvent:
            self._alias(event)
        elif kind is yaml.DocumentStartEvent:
            self._begin_document(event)

    def _begin_document(self, event: Any) -> None:
        if self.roots:
            raise self._refuse(event, "a second document begins here", "Keep one document a file")
        if event.version or event.tags:
            raise self._refuse(event, "a YAML directive", "Remove the line that begins with %")

    def _scalar(self, event: Any) -> None:
        self._refuse_tag(event)
        frame = self.stack[-1] if self.stack else None
        is_key = frame is not None and isinstance(frame.value, dict) and frame.key is None
        value = self._scalar_value(event)
        if is_key:
            self._set_key(event, value)
            return
        self._register(event.anchor, value, 1)
        self._place(event, value, size=1)

    def _scalar_value(self, event: Any) -> Any:
        if event.style:
            return event.value
        try:
            return resolve_plain_scalar(event.value)
        except AmbiguousScalarError as error:
            shown = event.value if len(event.value) <= 40 else event.value[:40] + "…"  # noqa: PLR2004
            raise self._refuse(event, f"unquoted {shown} {error}", f'Quote it: "{shown}"') from error

    def _set_key(self, event: Any, key: Any) -> None:
        frame = self.stack[-1]
        assert isinstance(frame.value, dict)
        if event.anchor:
            raise self._refuse(event, "an anchor on a key", "Remove it")
        if not isinstance(key, str):
            raise self._refuse(event, f"the key {event.value!r} is not a string", f'Quote it: "{event.value}"')
        place = (*frame.place, key)
        if key in frame.value:
            first = self.keys[place].line
            raise self._refuse(event, f"the key {key!r} stands here and in line {first}", "Keep one of the two")
        self.keys[place] = _mark(event)
        frame.key = key
        frame.value_place = place

    def _open(self, event: Any, value: dict[str, Any] | list[Any]) -> None:
        self._refuse_tag(event)
        if len(self.stack) >= MAXIMUM_DEPTH:
            raise self._refuse(event, f"nested deeper than {MAXIMUM_DEPTH} levels", "Flatten it")
        size_before = self.size
        place = self._place(event, value, size=1)
        self.stack.append(_Frame(place, value, event.anchor, size_before))

    def _close(self) -> None:
        frame = self.stack.pop()
        self._register(frame.anchor, frame.value, self.size - frame.size_before)

    def _register(self, anchor: str | None, value: Any, size: int) -> None:
        if anchor:
            self.anchors[anchor] = (value, size)

    def _alias(self, event: Any) -> None:
        frame = self.stack[-1] if self.stack else None
        if frame is not None and isinstance(frame.value, dict) and frame.key is None:
            raise self._refuse(event, "an alias as a key", "Write the key out")
        if any(outer.anchor for outer in self.stack):
            raise self._refuse(event, "an alias inside an anchored value", "Write the value out")
        if event.anchor not in self.anchors:
            raise self._refuse(event, f"the alias *{event.anchor} has no anchor before it", "Write the value out")
        value, size = self.anchors[event.anchor]
        self._place(event, value, size=size)

    def _place(self, event: Any, value: Any, *, size: int) -> Place:
        """Put `value` where it belongs and return its place; `size` counts the values in it, aliases expanded."""
        self.size += size
        if self.size > MAXIMUM_VALUES:
            raise self._refuse(
                event, f"more than {MAXIMUM_VALUES:,} values, aliases expanded", "Move long workloads to a prompt_file"
            )
        mark = _mark(event)
        if not self.stack:
            self.roots.append(value)
            place: Place = ()
        else:
            place = self._place_in(self.stack[-1], event, value, mark)
        self.values[place] = mark
        return place

    def _place_in(self, frame: _Frame, event: Any, value: Any, mark: Mark) -> Place:
        if type(frame.value) is list:
            place: Place = (*frame.place, len(frame.value))
            frame.value.append(value)
            self.keys[place] = mark
            return place
        assert isinstance(frame.value, dict)
        if frame.key is None:
            raise self._refuse(event, "a key that is not a string", "Use a plain string as key")
        frame.value[frame.key] = value
        frame.key = None
        return frame.value_place

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            raise self._refuse(event, f"the tag {event.tag}", "Remove it; quote what must be a string")

    def _refuse(self, event: Any, what: str, way_out: str) -> ManifestError:
        mark = _mark(event)
        return ManifestError(f"{self.source}:{mark.line}:{mark.column}: {what}. {way_out}.")

    def _syntax_error(self, error: yaml.MarkedYAMLError) -> ManifestError:
        mark = error.problem_mark or error.context_mark
        if mark is None:
            return ManifestError(f"{self.source}: not YAML: {error.problem or error.context}.")
        lines = self.text.split("\n")
        line_text = lines[mark.line] if mark.line < len(lines) else ""
        where = f"{self.source}:{mark.line + 1}:{mark.column + 1}"
        if "\t" in line_text[: len(line_text) - len(line_text.lstrip())]:
            return ManifestError(f"{where}: a tab in the indentation. Indent with spaces.")
        problem = ", ".join(part for part in (error.problem, error.context) if part)
        return ManifestError(f"{where}: not YAML: {problem}.")


def _mark(event: Any) -> Mark:
    start = event.start_mark
    return Mark(start.line + 1, start.column + 1)
