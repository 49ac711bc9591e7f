"""The figures that say most about how two versions of a golden differ, and what is the same in both."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from framework.compare.paths import extend, request_path
from framework.compare.requests import request_order

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TOKENS = "generated_tokens"
_NUMBERS = ("generated_logprobs", "prompt_logprobs", "top_n_logprobs")
_UNJUDGED = ("prompt_tokens", "margins")
_SECTIONS = ("counters", "performance")


@dataclass(frozen=True, slots=True)
class Place:
    """Where something differs first or most, with both values there; None where a list has ended."""

    path: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True)
class Tokens:
    """Generated tokens that differ: `changed` of `total` places in `requests` of the requests, and the first place.

    Each place beyond the end of the shorter list counts as changed; `total` counts the places of the longer lists.
    """

    changed: int
    total: int
    requests: tuple[str, ...]
    first: Place


@dataclass(frozen=True, slots=True)
class Move:
    """The largest move of a number of a field: its size, and where."""

    field: str
    size: float
    place: Place


@dataclass(frozen=True, slots=True)
class Figures:
    """What moved between two versions of a golden, and what did not.

    `sections` holds name, old and new value of every counter and figure of performance that differs, the most telling
    first. `fields` maps every other per-request field that differs to the ids of the requests in which it does.
    `same` has a phrase for each thing that is equal in both. `requests` are the ids that only one of the two has.
    """

    requests: tuple[str, ...]
    tokens: Tokens | None
    moves: tuple[Move, ...]
    sections: tuple[tuple[str, Any, Any], ...]
    fields: Mapping[str, tuple[str, ...]]
    same: tuple[str, ...]


def figures_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> Figures:
    """Return the figures of two versions of a golden; total on whatever stands in the requests."""
    then, now = old["requests"], new["requests"]
    both = [request_id for request_id in request_order(then) if request_id in now]
    pairs = {request_id: (then[request_id], now[request_id]) for request_id in both}
    names = sorted({name for pair in pairs.values() for request in pair for name in request} - {*_UNJUDGED})
    differing = {name: tuple(key for key, pair in pairs.items() if _differs(*pair, name)) for name in names}
    moves = (_largest_move(pairs, name) for name in _NUMBERS if differing.get(name))
    return Figures(
        requests=tuple(request_order(then.keys() ^ now.keys())),
        tokens=_tokens(pairs, differing.get(_TOKENS, ())),
        moves=tuple(move for move in moves if move is not None),
        sections=tuple(_section_changes(old, new)),
        fields={name: ids for name, ids in differing.items() if ids and name != _TOKENS},
        same=tuple(_same(pairs, differing, old, new)),
    )


def _differs(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> bool:
    return (name in old) != (name in new) or not same_json(old.get(name), new.get(name))


def same_json(old: Any, new: Any) -> bool:
    """Say whether two JSON values are one, where 1, 1.0 and true are three."""
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(same_json(old[name], new[name]) for name in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(same_json, old, new))
    return type(old) is type(new) and bool(old == new)


def _tokens(pairs: Mapping[str, tuple[Any, Any]], ids: tuple[str, ...]) -> Tokens | None:
    changed, total, first = 0, 0, None
    for request_id, (old, new) in pairs.items():
        lists = [request.get(_TOKENS) for request in (old, new)]
        if not all(isinstance(each, list) for each in lists):
            continue
        total += max(map(len, lists))
        if request_id not in ids:
            continue
        for index, (then, now) in enumerate(itertools.zip_longest(*lists)):
            if not same_json(then, now):
                changed += 1
                first = first or Place(f"{request_path(request_id)}.{_TOKENS}[{index}]", then, now)
    return Tokens(changed, total, ids, first) if first is not None else None


def _largest_move(pairs: Mapping[str, tuple[Any, Any]], name: str) -> Move | None:
    largest: Move | None = None
    for request_id, (old, new) in pairs.items():
        for steps, then, now in _numbers(old.get(name), new.get(name)):
            size = abs(now - then)
            if size > (largest.size if largest else 0.0):
                path = extend(f"{request_path(request_id)}.{name}", steps)
                largest = Move(name, size, Place(path, then, now))
    return largest


def _numbers(old: Any, new: Any, steps: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any, Any]]:
    """Yield every place at which both values hold a finite number, walking down lists and maps."""
    if isinstance(old, list) and isinstance(new, list):
        for index, (then, now) in enumerate(zip(old, new, strict=False)):
            yield from _numbers(then, now, (*steps, index))
    elif isinstance(old, dict) and isinstance(new, dict):
        if old.get("token_id") == new.get("token_id"):
            yield from _numbers(old.get("logprob"), new.get("logprob"), (*steps, "logprob"))
    elif type(old) is float and type(new) is float and math.isfinite(old) and math.isfinite(new):
        yield steps, old, new


def _section_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    changes = []
    for section in _SECTIONS:
        then, now = old.get(section, {}), new.get(section, {})
        both = (
            (name, then.get(name), now.get(name)) for name in sorted({*then, *now}) if _differs(then, now, str(name))
        )
        changes += sorted(both, key=lambda change: -_tellingness(*change[1:]))
    return changes


def _tellingness(old: Any, new: Any) -> float:
    """Rank a change: what begins or ends says most, then the larger share."""
    if not all(type(value) in (int, float) for value in (old, new)) or not old or not new:
        return math.inf
    try:
        return float(abs(new - old) / max(abs(old), abs(new)))
    except OverflowError:
        return 1.0


def _same(
    pairs: Mapping[str, tuple[Any, Any]],
    differing: Mapping[str, tuple[str, ...]],
    old: Mapping[str, Any],
    new: Mapping[str, Any],
) -> Iterator[str]:
    for name, ids in differing.items():
        if not ids:
            count = sum(len(then[name]) for then, _ in pairs.values() if isinstance(then.get(name), list))
            yield f"{name} ({count})" if count else name
    for section in _SECTIONS:
        then, now = old.get(section, {}), new.get(section, {})
        equal = sum(not _differs(then, now, name) for name in then.keys() & now.keys())
        if equal:
            yield f"{section} ({equal}{'' if equal == len(then.keys() | now.keys()) else ' of them'})"
