"""The manifest's JSON Schema, and its check in plain words.

`manifest.schema.json` is published for editors; this module reads the keywords that it uses (draft 2020-12) and turns
each violation into a sentence with the place and the nearest valid name. An integer is an integer: neither `1.0` nor
`true` is one.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

from framework.manifest.strict_yaml import Document, Place, dotted
from framework.manifest.suggest import as_sentence, did_you_mean

Schema = Mapping[str, Any]

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
_WORDS: Final = {
    "object": "a map",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "null": "null",
    "integer": "an integer",
    "number": "a number",
}
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)
_LONGEST_SHOWN: Final = 40
_MOST_SHOWN: Final = 10


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that is wrong at `place`: what, and the way out. `at_key`: the key is wrong, not its value."""

    place: Place
    message: str
    way_out: str
    at_key: bool = False

    def sentence(self) -> str:
        """Return what is wrong, with its place and the way out."""
        name = dotted(self.place)
        about = f"{name}: " if self.at_key else f"{name} " if name else ""
        return f"{about}{self.message}. {as_sentence(self.way_out)}"


@functools.cache
def manifest_schema() -> Schema:
    """Return the manifest's JSON Schema."""
    text = resources.files("framework.manifest").joinpath("manifest.schema.json").read_text("utf-8")
    schema: Schema = json.loads(text)
    return schema


def prompt_schema() -> Schema:
    """Return the part of the schema that describes one prompt, a line of a prompt file."""
    prompt: Schema = manifest_schema()["$defs"]["prompt"]
    return prompt


def violations(value: Any, schema: Schema, place: Place = ()) -> list[Violation]:
    """Return what of `value`, which stands at `place`, breaks `schema`, in the order of the file."""
    found: list[Violation] = []
    _check(value, schema, place, found)
    return found


def refusals(document: Document, found: Iterable[Violation]) -> list[str]:
    """Return what is wrong with a document as lines with file, line and column; many are cut to the first ones."""
    lines = []
    for violation in found:
        mark = document.mark(violation.place)
        if violation.at_key:
            mark = document.keys.get(violation.place, mark)
        lines.append(f"{document.source}:{mark.line}:{mark.column}: {violation.sentence()}")
    hidden = len(lines) - _MOST_SHOWN
    return [*lines[:_MOST_SHOWN], f"… and {hidden} more."] if hidden > 0 else lines


def _check(value: Any, schema: Schema, place: Place, found: list[Violation]) -> None:
    schema = resolve(schema)
    if "type" in schema and not _is_of_type(value, schema["type"]):
        found.append(_wrong_type(value, schema, place))
        return
    if "const" in schema and value != schema["const"]:
        found.append(Violation(place, f"is {show(value)}", f"Write {show(schema['const'])}"))
    if "if" in schema and _is_of_type(value, schema["if"]["type"]):
        _check(value, schema["then"], place, found)
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(show(choice) for choice in schema["enum"])
        hint = did_you_mean(value, schema["enum"]) if isinstance(value, str) else ""
        found.append(Violation(place, f"is {show(value)}, not one of {choices}", hint or "Write one of them"))
    kind = type(value)
    if kind is str:
        found.extend(_violations_of_string(value, schema, place))
    elif kind is int or kind is float:
        found.extend(_violations_of_number(value, schema, place))
    elif kind is list:
        found.extend(_violations_of_size(value, schema, place, "Items", "items"))
        _check_items(value, schema, place, found)
    elif kind is dict:
        found.extend(_violations_of_size(value, schema, place, "Properties", "keys"))
        _check_keys(value, schema, place, found)


def resolve(schema: Schema) -> Schema:
    """Follow the `$ref` of a part of the manifest's schema."""
    if "$ref" not in schema:
        return schema
    found: Schema = manifest_schema()["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return found


def type_words(schema: Schema) -> str:
    """Return the type of a part of the schema in words: `a string or a map`."""
    names = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    return " or ".join(_WORDS[name] for name in names)


def show(value: Any) -> str:
    """Return a manifest value for a message, as it would stand in the file, cut where it is long."""
    if isinstance(value, (dict, list)):
        return ("a map" if isinstance(value, dict) else "a list") if value else "empty"
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return json.dumps(value[:_LONGEST_SHOWN] + "…", ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


def _is_of_type(value: Any, names: str | list[str]) -> bool:
    if isinstance(names, str):
        return type(value) in _TYPES[names]
    return any(type(value) in _TYPES[name] for name in names)


def _wrong_type(value: Any, schema: Schema, place: Place) -> Violation:
    names = schema["type"]
    what = f"the string {show(value)}" if isinstance(value, str) else show(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value) and ("integer" in names or "number" in names):
        way_out = "Remove the quotes"
    elif "integer" in names and isinstance(value, float) and value.is_integer():
        way_out = f"Write {int(value)}"
    elif "string" in names and isinstance(value, (int, float)):
        way_out = f'Quote it: "{show(value)}"'
    elif value is None:
        way_out = "Write a value, or remove the key"
    else:
        way_out = f"Write {type_words(schema)}"
    return Violation(place, f"is {what}, not {type_words(schema)}", way_out)


def _violations_of_string(value: str, schema: Schema, place: Place) -> Iterator[Violation]:
    if len(value) < schema.get("minLength", 0):
        yield Violation(place, "is empty", "Write something, or remove the key")
    if len(value) > schema.get("maxLength", len(value)):
        yield Violation(place, f"has {len(value)} characters", f"At most {schema['maxLength']} are allowed")
    elif "pattern" in schema and not _compiled(schema["pattern"]).search(value):
        yield Violation(place, f"is {show(value)}", f"Allowed are {schema['x-form']}")


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    # `$` of JSON Schema is the end of the text; that of Python also matches before a final line break.
    return re.compile(re.sub(r"\$$", r"\\Z", pattern), re.ASCII)


def _violations_of_number(value: float, schema: Schema, place: Place) -> Iterator[Violation]:
    low, above, high = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")
    if low is not None and value < low:
        yield Violation(place, f"is {show(value)}", f"It must be at least {low}")
    elif above is not None and value <= above:
        yield Violation(place, f"is {show(value)}", f"It must be above {above}")
    elif high is not None and value > high:
        yield Violation(place, f"is {show(value)}", f"It must be at most {high}")


def _violations_of_size(
    value: list[Any] | dict[str, Any], schema: Schema, place: Place, keyword: str, noun: str
) -> Iterator[Violation]:
    """Check `minItems` and `maxItems`, or `minProperties` and `maxProperties`."""
    fewest, most = schema.get(f"min{keyword}", 0), schema.get(f"max{keyword}", len(value))
    if len(value) < fewest:
        yield Violation(place, f"has {len(value)} {noun}" if value else "is empty", f"Write at least {fewest}")
    if len(value) > most:
        yield Violation(place, f"has {len(value)} {noun}", f"At most {most} are allowed")


def _check_items(value: list[Any], schema: Schema, place: Place, found: list[Violation]) -> None:
    if len(value) > schema.get("maxItems", len(value)):
        return
    items, unique = schema.get("items"), schema.get("uniqueItems", False)
    seen: set[str] = set()
    for index, item in enumerate(value):
        here = (*place, index)
        if unique and repr(item) in seen:
            found.append(Violation(here, f"{show(item)} stands in the list twice", "Remove one of the two"))
        seen.add(repr(item) if unique else "")
        if items is not None:
            _check(item, items, here, found)


def _check_keys(value: dict[str, Any], schema: Schema, place: Place, found: list[Violation]) -> None:
    known: Mapping[str, Schema] = schema.get("properties", {})
    for key in schema.get("required", ()):
        if key not in value:
            meaning = str(resolve(known[key])["description"]).rstrip(".")
            found.append(Violation(place, f'the key "{key}" is missing', meaning))
    others, names = schema.get("additionalProperties", True), schema.get("propertyNames")
    for key, item in value.items():
        here = (*place, key)
        if names is not None:
            wrong = violations(key, names, here)
            found.extend(Violation(here, f"the key {one.message}", one.way_out, at_key=True) for one in wrong)
        if key in known:
            _check(item, known[key], here, found)
        elif others is False:
            # Looking for the nearest name takes its time, and no more than a few violations are ever shown.
            near = did_you_mean(key, known) if len(found) < _MOST_SHOWN else ""
            hint = near or f"Known are: {', '.join(known)}"
            found.append(Violation(here, "this key is not known here", hint, at_key=True))
        elif others is not True:
            _check(item, others, here, found)
