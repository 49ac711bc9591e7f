"""What a change does to goldens, and what of that a gate refuses.

A value that moved without a reason, without a proof, beyond what was declared, or on one platform only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from framework.compare.finding import FindingClass
from framework.errors import GoldenError
from framework.explain.change import change_between
from framework.gate.refusal import Refusal, RefusalClass
from framework.golden.store import Golden, parse_golden
from framework.manifest.fixture import Fixture
from framework.regenerate.difference import difference

_OF_ONE_DEVICE: Final = frozenset({FindingClass.LOGPROB.value, FindingClass.PERFORMANCE.value})
"""Classes of values that may move on one platform and stay on another."""


@dataclass(frozen=True, slots=True)
class GoldenChange:
    """One golden that is not the same at both sides, with its bytes there; None where it is not."""

    path: str
    old: bytes | None
    new: bytes | None

    @property
    def fixture(self) -> str:
        """The name of its fixture."""
        return self.path.removeprefix("goldens/").rpartition("/")[0]

    @property
    def platform(self) -> str:
        """The platform it is for."""
        return self.path.rpartition("/")[2].removesuffix(".json")


def changed_goldens(
    base: Mapping[str, str], head: Mapping[str, str], read: Callable[[Mapping[str, str], list[str]], dict[str, bytes]]
) -> tuple[GoldenChange, ...]:
    """Return every golden that is not the same in two commits, given their files; `read` gives bytes of some."""
    paths = [path for path in sorted({*base, *head}) if path.startswith("goldens/") and path.endswith(".json")]
    paths = [path for path in paths if base.get(path) != head.get(path)]
    old, new = read(base, paths), read(head, paths)
    return tuple(GoldenChange(path, old.get(path), new.get(path)) for path in paths)


def refusals_of(
    change: GoldenChange, fixture: Fixture | None, problems: Callable[[GoldenChange, Golden], Sequence[str]]
) -> Iterator[Refusal]:
    """Yield why a golden that a change brings may not come in; `fixture` is the one that reads it, if there is one.

    `problems` says what of a golden can be seen not to be proven. A golden that cannot be read is left to the run and
    to lint, which refuse it too.
    """
    new, old = _parsed(change.new, change.path), _parsed(change.old, change.path)
    if isinstance(new, GoldenError):
        yield Refusal(RefusalClass.NOT_PROVEN, change.path, str(new))
        return
    if new is None:
        return
    origin = new.document["provenance"]
    if isinstance(old, Golden) and _reasons(old.document["provenance"]) == _reasons(origin):
        message = f"its values are others and its reason is still {_quoted(origin.get('reason'))}"
        way_out = "Record it with `golden regen --reason …`, which says why these values are right"
        yield Refusal(RefusalClass.NO_REASON, change.path, f"{message}. {way_out}")
    for problem in problems(change, new):
        yield Refusal(RefusalClass.NOT_PROVEN, change.path, problem)
    if isinstance(old, Golden) and fixture is not None:
        yield from _out_of_scope(change, fixture, old, new)


@dataclass(frozen=True, slots=True)
class Sibling:
    """A golden of a changed fixture on another platform, which the change left as it was.

    `is_stale` says that it was recorded for another manifest or model than the head's.
    """

    fixture: str
    platform: str
    is_stale: bool


def unrefreshed(change: GoldenChange, siblings: Sequence[Sibling], declared: frozenset[str]) -> Iterator[Refusal]:
    """Yield a refusal for every sibling that stayed while a golden moved in what platforms share.

    A stale one cannot be excused: no run of its lane could pass.
    """
    moved = _shared_classes(change) if siblings else []
    for sibling in siblings:
        subject = f"{sibling.fixture} on {sibling.platform}"
        if sibling.is_stale:
            why = f"it was recorded for another manifest or model, while {change.path} was recorded again"
            way_out = ""
        elif moved and subject not in declared:
            why = f"{', '.join(moved)} moved on {change.platform}, and it stayed"
            way_out = ", or say why it stays under `declared` in gate.yaml"
        else:
            continue
        record = f"Record it where {sibling.platform} is (`golden regen --out DIR`, then `golden accept DIR`)"
        yield Refusal(RefusalClass.SIBLING, subject, f"{why}. {record}{way_out}")


def _shared_classes(change: GoldenChange) -> list[str]:
    old, new = _parsed(change.old, change.path), _parsed(change.new, change.path)
    if not isinstance(old, Golden) or not isinstance(new, Golden):
        return []
    by_class = change_between(old.document, new.document).by_class
    return sorted(by_class.keys() - _OF_ONE_DEVICE)


def _out_of_scope(change: GoldenChange, fixture: Fixture, old: Golden, new: Golden) -> Iterator[Refusal]:
    """Compare as `golden accept` does: what lies within its tolerance has not moved."""
    accepted = new.document["provenance"].get("accepted")
    only = accepted.get("only") if isinstance(accepted, dict) else None
    if not isinstance(only, list) or not only:
        return
    by_class = difference(fixture, old, new.document, new.document["hashes"]).by_class
    beyond = sorted(by_class.keys() - {*map(str, only), FindingClass.STALE.value})
    if beyond:
        message = f"accepted for {', '.join(map(str, only))} only, and {', '.join(beyond)} moved too"
        way_out = "Find out why, or accept it anew with what may move"
        yield Refusal(RefusalClass.OUT_OF_SCOPE, change.path, f"{message}. {way_out}")


def _reasons(provenance: Mapping[str, Any]) -> tuple[Any, Any]:
    accepted = provenance.get("accepted")
    return provenance.get("reason"), accepted.get("reason") if isinstance(accepted, dict) else None


def _parsed(data: bytes | None, path: str) -> Golden | GoldenError | None:
    if data is None:
        return None
    try:
        return parse_golden(data, Path(path))
    except GoldenError as error:
        return error


def _quoted(text: Any) -> str:
    return f'"{text}"'
