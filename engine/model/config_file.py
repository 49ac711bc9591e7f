"""A model's JSON files with typed access; every complaint names the file, the key and its value."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from engine.text_file import read_text_file

JsonObject: TypeAlias = dict[str, Any]

MAXIMUM_BYTES = 32_000_000
"""The most that is read of a JSON file; the largest index of a published checkpoint has a third of it."""

_LARGEST_SIZE = 1 << 24
_LONGEST_SHOWN = 200
_LARGEST_NUMBER = 1e30


class ModelError(ValueError):
    """A model directory cannot be used; the message says which file, which setting, why, and the way out."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The object in one JSON file of a model."""

    path: Path
    values: JsonObject

    @classmethod
    def read(cls, path: Path) -> ConfigFile:
        """Read a file whose top level is an object.

        Raises:
            ModelError: unreadable, malformed, or something else at the top.
        """
        return cls(path, read_json_object(path))

    def error(self, key: str, why: str) -> ModelError:
        """A complaint about the value of a key."""
        shown = json.dumps(self.values.get(key))
        if len(shown) > _LONGEST_SHOWN:
            shown = f"{shown[:_LONGEST_SHOWN]}…"
        return ModelError(f"{self.path}: {key} = {shown} {why}")

    def text(self, key: str) -> str:
        """A string."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.error(key, "must be a string")
        return value

    def size(self, key: str, *, default: int | None = None, largest: int = _LARGEST_SIZE) -> int:
        """An integer from 1 to `largest`; absent and null mean the default, if there is one."""
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= largest:
            raise self.error(key, f"must be an integer from 1 to {largest}")
        return value

    def number(self, key: str, *, default: float) -> float:
        """A number that is finite and above zero."""
        value = self.values.get(key, default)
        if not is_positive_number(value):
            raise self.error(key, "must be a positive number")
        return float(value)

    def flag(self, key: str) -> bool:
        """True or false; absent means false."""
        value = self.values.get(key, False)
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def indices(self, key: str) -> tuple[int, ...]:
        """A list of integers of at least 0; absent and null mean none."""
        value = self.values.get(key)
        value = [] if value is None else value
        if not isinstance(value, list) or not all(type(item) is int and item >= 0 for item in value):
            raise self.error(key, "must be a list of indices from 0")
        return tuple(value)


def read_json_object(path: Path) -> JsonObject:
    """Read a JSON file whose top level is an object.

    Raises:
        ModelError: unreadable, malformed, or something else at the top.
    """
    try:
        value = json.loads(read_text_file(path, MAXIMUM_BYTES))
    except json.JSONDecodeError as error:
        raise ModelError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path}: the top level must be an object")
    return value


def is_positive_number(value: object) -> bool:
    """Whether a JSON value is a number that is finite and above zero."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LARGEST_NUMBER
