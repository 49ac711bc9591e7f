"""The only place that writes goldens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.clock import today
from framework.errors import GoldenError
from framework.golden.lock import writer_lock
from framework.golden.store import remove_parts, write_all
from framework.regenerate.candidates import candidate_bytes
from framework.regenerate.plan import Change, Kind, data_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


class StaleRegenError(GoldenError):
    """A golden that is no longer the one a change was planned against."""


def provenance(reason: str, adapter_spec: str, revision: str) -> dict[str, Any]:
    """Return where the goldens of this regeneration come from; `date` is today's, in UTC."""
    return {"reason": reason, "adapter": adapter_spec, "engine_revision": revision, "date": today().isoformat()}


def acceptance(reason: str, only: Sequence[str] = ()) -> dict[str, Any]:
    """Return what is added to a candidate's provenance by whoever brings it in; `date` is today's, in UTC.

    `only` are the classes of values that were allowed to move, none where any was.
    """
    scope = {"only": sorted(set(only))} if only else {}
    return {"accepted": {"reason": reason, "date": today().isoformat(), **scope}}


def apply_changes(
    changes: Sequence[Change],
    *,
    state_folder: Path,
    origin: Mapping[str, Any],
) -> list[Path]:
    """Write every new and changed golden, all of them or none, and return their paths.

    `origin` is laid over the provenance that each change has of its own.

    Raises:
        StaleRegenError: a golden is not what it was when the change was planned; nothing is written then.
        GoldenError: one cannot be written, or another process is writing; nothing is written then.
    """
    to_write = [change for change in changes if change.kind in (Kind.NEW, Kind.CHANGED)]
    if not to_write:
        return []
    with writer_lock(state_folder):
        for change in to_write:
            _is_as_planned(change)
        try:
            remove_parts(change.path for change in to_write)
            write_all({change.path: candidate_bytes(change, origin) for change in to_write})
        except OSError as error:
            raise GoldenError(
                f"{error.filename or to_write[0].path}: cannot be written: {error.strerror or error}; no golden was"
                " changed. Make room for it, or make it writable, then run it again",
            ) from None
    return [change.path for change in to_write]


def _is_as_planned(change: Change) -> None:
    if data_at(change.path) != change.old_data:
        raise StaleRegenError(
            f"STALE_REGEN: {change.path}: it changed since this was planned; nothing was written. Look at what changed"
            " it, then run `golden regen` again",
        )
