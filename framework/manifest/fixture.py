"""A manifest after loading: what to run and what to judge, as plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framework.compare.rules import Rules


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request of a workload.

    Exactly one of `text`, `token_ids` and `random_length` (with `random_seed`) is set; `sampling` holds only what
    this request sets differently from the workload; `arrival_step` is an index of loop calls, idle ones included.
    """

    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    random_length: int | None = None
    random_seed: int | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    arrival_step: int | None = None


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of a fixture; their ids are "0", "1", … in order. `requests_per_step` None means all at start."""

    prompts: tuple[Prompt, ...]
    sampling: Mapping[str, Any]
    requests_per_step: int | None = None
    repeats: int = 1


@dataclass(frozen=True, slots=True)
class Witness:
    """A condition that a run must meet, so that the fixture proves what it says: `counters.x > 0`."""

    path: str
    operator: str
    number: int | float

    def __str__(self) -> str:
        return f"{self.path} {self.operator} {self.number}"


@dataclass(frozen=True, slots=True)
class Relation:
    """Another fixture whose per-request fields stand in a known relation to this one's."""

    kind: str
    other: str


@dataclass(frozen=True, slots=True)
class Fixture:
    """One manifest.

    `engine` holds pinned settings only; `manifest_sha256` is taken over the file's meaning (its canonical JSON), so a
    comment or a reordered key does not make a golden stale. `lines` maps a dotted manifest path to its line, for
    errors found later.
    """

    name: str
    path: Path
    summary: str
    model: str
    engine: Mapping[str, Any]
    workload: Workload
    rules: Rules
    tags: tuple[str, ...] = ()
    ranks: int = 1
    witnesses: tuple[Witness, ...] = ()
    relations: tuple[Relation, ...] = ()
    platforms: tuple[str, ...] = ("cpu",)
    time_limit_s: float = 120.0
    owner: str = ""
    manifest_sha256: str = ""
    lines: Mapping[str, int] = field(default_factory=dict)
