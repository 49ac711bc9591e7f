"""The border between the framework and any engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from framework.manifest.fixture import Fixture


@dataclass(frozen=True, slots=True)
class SettingDescription:
    """What an engine says of one of its settings.

    `kind` is `bool`, `int`, `float` or `str`; `choices` is empty where any value of the kind is allowed; `minimum`
    applies to numbers; `optional` says that null is allowed too.
    """

    default: Any
    kind: str
    help: str
    choices: tuple[Any, ...] = ()
    minimum: float | None = None
    optional: bool = False


class Adapter(Protocol):
    """What an engine must offer to be judged. `describe` must be cheap: it is called before any engine starts."""

    def describe(self) -> Mapping[str, SettingDescription]:
        """Return every setting by name, with its default."""
        ...

    def check_settings(self, pinned: Mapping[str, Any]) -> None:
        """Raise `ValueError` with the engine's own words if the pinned settings cannot be combined."""
        ...

    def platforms(self) -> tuple[str, ...]:
        """Return the platforms this machine can run, the preferred one first: `("cpu",)`, `("nvidia-h200", "cpu")`."""
        ...

    def revision(self) -> str:
        """Return what identifies the engine's code, for provenance."""
        ...

    def model_hashes(self, model_path: Path) -> Mapping[str, str]:
        """Return SHA-256 of the model (`model`) and of its tokenizer (`tokenizer`)."""
        ...

    def run(self, fixture: Fixture, *, model_path: Path, platform: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Run the fixture's workload and return a record (`golden.record/1`).

        `overrides` are settings laid over the pinned ones for proofs (another thread count, the other scheduling
        mode); they are recorded as pinned. Whatever is wrong with one request is that request's `error`; an exception
        means that the engine itself failed.
        """
        ...


@runtime_checkable
class ChecksSampling(Protocol):
    """What an adapter may offer besides: to say what its engine cannot do before it starts."""

    def check_sampling(self, sampling: Mapping[str, Any]) -> None:
        """Raise `ValueError` in the engine's own words if it cannot sample so.

        `sampling` is what a manifest asks for one request, the workload's part included.
        """
        ...


@runtime_checkable
class ChecksFixtures(Protocol):
    """What an adapter may offer besides: to look at files that settings name before its engine starts."""

    def check_fixture(self, fixture: Fixture) -> None:
        """Raise `ValueError` in the engine's own words if a file that the fixture's settings name cannot be used."""
        ...


@runtime_checkable
class DecodesTokens(Protocol):
    """What an adapter may offer besides: the text of tokens, so that a verdict can show what differs."""

    def decode(self, model_path: Path, token_ids: Sequence[int]) -> str:
        """Return the text of tokens, special ones included. It must be cheap, and not load the engine."""
        ...


@runtime_checkable
class TracesSchedule(Protocol):
    """What an adapter may offer besides: which step computed what, so that a verdict can name it."""

    def schedule(self) -> Sequence[Mapping[str, Any]]:
        """Return the plans of the latest run in the order of launching, as `framework.explain.schedule` has them."""
        ...


@runtime_checkable
class Prepares(Protocol):
    """What an adapter may offer besides: to import what every run needs while manifests are still being read."""

    def prepare(self) -> None:
        """Do what every run needs first, whatever the fixture; it is called once, in the engine's process.

        What it raises is dropped: the first run meets it again, and says so.
        """
        ...


@runtime_checkable
class VariesEnvironment(Protocol):
    """What an adapter may offer besides: ways to compute the same on the same machine with other instructions."""

    def environment_variants(self) -> Mapping[str, Mapping[str, str]]:
        """Return, by name, environment variables that make the CPU compute with another instruction set."""
        ...
