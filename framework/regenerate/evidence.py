"""What the runs of a proof say in numbers: how far values spread, and whether margins are wide enough for that."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.compare.rule import RuleKind
from framework.errors import GoldenError
from framework.golden.document import require_golden
from framework.run.workload import is_greedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from framework.compare.rules import Rules
    from framework.manifest.fixture import Fixture

MARGIN_FACTOR = 100.0
LEAST_RUNS = 3
_SECTIONS = ("counters", "performance")


@dataclass(frozen=True, slots=True)
class Evidence:
    """The figures of a proof, as they are stored with a golden.

    `spread` is the largest absolute difference between runs by per-request field; `instruction_set_error` that of a
    margin between instruction sets, None where none was measured.
    """

    runs: int
    spread: Mapping[str, float]
    instruction_set_error: float | None

    def as_json(self) -> dict[str, Any]:
        """Return the entry `proof` of a golden's provenance."""
        return {
            "runs": self.runs,
            "spread": dict(self.spread),
            "instruction_set_error": self.instruction_set_error,
        }


def evidence_of(provenance: Mapping[str, Any]) -> Evidence:
    """Read the figures that are stored in a golden's provenance.

    Raises:
        GoldenError: there are none, or they are no such figures; the message says which.
    """
    proof = provenance.get("proof")
    if not isinstance(proof, dict):
        raise GoldenError("there is no proof in its provenance")
    runs, spread, error = (proof.get(name) for name in ("runs", "spread", "instruction_set_error"))
    if type(runs) is not int or runs < 0:
        raise GoldenError("its proof does not say how many runs there were")
    if not isinstance(spread, dict) or not all(_is_a_distance(value) for value in spread.values()):
        raise GoldenError("its proof does not say how far runs spread")
    if error is not None and not _is_a_distance(error):
        raise GoldenError("its proof does not say how far instruction sets differ")
    return Evidence(runs, spread, error)


def _is_a_distance(value: Any) -> bool:
    return type(value) in (int, float) and 0.0 <= value <= sys.float_info.max


@dataclass(slots=True)
class Spread:
    """The largest absolute difference between runs, per per-request field."""

    _largest: dict[str, float] = field(default_factory=dict)

    def add(self, first: Mapping[str, Any], other: Mapping[str, Any], names: Iterable[str]) -> None:
        """Take another run of the same fixture into account."""
        for name in names:
            differences = list(_differences(first, other, name))
            if differences:
                self._largest[name] = max(self._largest.get(name, 0.0), *differences)

    def add_asserted(self, first: Mapping[str, Any], other: Mapping[str, Any], rules: Rules) -> None:
        """Take another run into account, for the fields that are judged within a tolerance."""
        self.add(first, other, [name for name, rule in rules.asserted.items() if rule.kind is RuleKind.NUMERIC])

    def of(self, name: str) -> float | None:
        """Return the largest difference seen in a field, None if it was in no two runs."""
        return self._largest.get(name)

    def as_json(self) -> dict[str, float]:
        """Return the spread of every field."""
        return dict(self._largest)


def per_request_rules(rules: Rules) -> Rules:
    """Return the rules without what a schedule may change: counters and performance are informed."""
    return rules_without(rules, _SECTIONS)


def rules_without(rules: Rules, sections: Iterable[str]) -> Rules:
    """Return the rules with all of these sections informed, whatever was asserted of them."""
    names = frozenset(sections)
    kept = {name: rule for name, rule in rules.asserted.items() if name.partition(".")[0] not in names}
    moved = frozenset(rules.asserted) - frozenset(kept)
    return dataclasses.replace(rules, asserted=kept, informed=rules.informed | moved | names)


def shape_problems(golden: Mapping[str, Any], fixture: Fixture) -> list[str]:
    """Return why the golden that a record would become could not be read back as the golden of this fixture."""
    try:
        require_golden({**golden, "seal": ""}, Path(fixture.name))
    except GoldenError as error:
        return [str(error)]
    return []


def missing_values(fixture: Fixture, record: Mapping[str, Any]) -> list[str]:
    """Return what a record lacks that its golden needs: requests, and the margins that say how sure each token is.

    A request that failed has no margins, and those of one that samples do not decide its tokens.
    """
    problems = []
    for index in range(len(fixture.workload.prompts)):
        request = record["requests"].get(str(index))
        if request is None:
            problems.append(f'requests["{index}"]: the engine gave no such request')
        elif "error" not in request and is_greedy(fixture.workload, index):
            tokens, margins = request.get("generated_tokens"), request.get("margins")
            if margins is None or (isinstance(tokens, list) and len(margins) != len(tokens)):
                problems.append(
                    f'requests["{index}"].margins: a margin for each token that was generated greedily is needed, to'
                    " tell a stable token from a tie; let the adapter return them",
                )
    return problems


def margin_problems(fixture: Fixture, record: Mapping[str, Any], instruction_set_error: float | None) -> list[str]:
    """Return why the tokens of a record may not be relied on: exact ties, and margins another CPU could turn.

    The margins of a request that samples do not decide its tokens, so they are not looked at.
    """
    needed = MARGIN_FACTOR * (instruction_set_error or 0.0)
    problems = []
    for request_id, request in record["requests"].items():
        if not is_greedy(fixture.workload, int(request_id)):
            continue
        for position, margin in enumerate(request.get("margins", [])):
            place = f'requests["{request_id}"].margins[{position}]'
            if not margin > 0.0:
                problems.append(
                    f"{place}: the margin {margin!r} is an exact tie of two tokens: either may win"
                    " elsewhere. Change the prompt",
                )
                break
            if margin < needed:
                problems.append(
                    f"{place}: the margin {margin:.3g} is less than {MARGIN_FACTOR:.0f} times the measured difference"
                    f" between instruction sets, {instruction_set_error:.3g}: another CPU could choose another token."
                    " Change the prompt, or generate fewer tokens",
                )
                break
    return problems


def _differences(first: Mapping[str, Any], other: Mapping[str, Any], name: str) -> Iterator[float]:
    for request_id, request in first["requests"].items():
        yield from _between(request.get(name), other["requests"].get(request_id, {}).get(name))


def _between(first: Any, other: Any) -> Iterator[float]:
    """Yield the absolute differences of two nested lists of numbers, as far as their forms agree."""
    if isinstance(first, list) and isinstance(other, list):
        for mine, theirs in zip(first, other, strict=False):
            yield from _between(mine, theirs)
    elif isinstance(first, dict) and isinstance(other, dict):
        for key in first.keys() & other.keys():
            yield from _between(first[key], other[key])
    elif isinstance(first, float) and isinstance(other, float) and abs(first - other) >= 0.0:
        yield abs(first - other)
