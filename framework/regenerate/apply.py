"""The only place that writes goldens."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from framework.errors import GoldenError
from framework.golden.lock import writer_lock
from framework.golden.seal import sealed_bytes
from framework.golden.store import remove_parts, write_all
from framework.regenerate.plan import Change, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def provenance(reason: str, adapter_spec: str, revision: str) -> dict[str, Any]:
    """Return where the goldens of this regeneration come from; `date` is today's, in UTC."""
    return {
        "reason": reason,
        "adapter": adapter_spec,
        "engine_revision": revision,
        "date": datetime.now(UTC).date().isoformat(),
    }


def apply_changes(
    changes: Sequence[Change],
    *,
    state_folder: Path,
    origin: Mapping[str, Any],
) -> list[Path]:
    """Write every new and changed golden, all of them or none, and return their paths.

    Raises:
        GoldenError: a golden is not what it was when the change was planned , one cannot be written, or
            another process is writing; nothing is written then.
    """
    to_write = [change for change in changes if change.kind in (Kind.NEW, Kind.CHANGED)]
    with writer_lock(state_folder):
        for change in to_write:
            _is_as_planned(change)
        try:
            remove_parts(change.path for change in to_write)
            write_all({change.path: _bytes(change, origin) for change in to_write})
        except OSError as error:
            raise GoldenError(
                f"{error.filename or to_write[0].path}: cannot be written: {error.strerror or error}; no golden was"
                " changed. Make room for it, then run `golden regen` again",
            ) from None
    return [change.path for change in to_write]


def _bytes(change: Change, origin: Mapping[str, Any]) -> bytes:
    assert change.document is not None, "only a fixture without problems is written"
    proof = change.proof
    evidence = {
        "runs": proof.runs,
        "spread": proof.spread.as_json(),
        "instruction_set_error": proof.instruction_set_error,
    }
    source = {**origin, "proof": evidence, "previous_seal": change.old_seal}
    return sealed_bytes(change.document | {"provenance": source})


def _is_as_planned(change: Change) -> None:
    data = change.path.read_bytes() if change.path.is_file() else None
    if data != change.old_data:
        raise GoldenError(
            f"STALE_REGEN: {change.path}: it changed while the fixture was run; nothing was written. Look at what"
            " changed it, then run `golden regen` again",
        )
