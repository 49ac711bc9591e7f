"""What makes a golden stale: the hash of the part of a manifest that decides what is run, judged and proven."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from framework.compare.rule import Rule
from framework.compare.rules import Rules
from framework.manifest.fixture import Prompt, Relation, Witness, Workload


def manifest_sha256(
    *,
    model: str,
    engine: Mapping[str, Any],
    ranks: int,
    workload: Workload,
    rules: Rules,
    witnesses: Sequence[Witness],
    relations: Sequence[Relation],
) -> str:
    """Return the SHA-256 over the canonical JSON of what a fixture means, with defaults filled in.

    It covers what is run (`model`, `engine`, `ranks`, `workload`, prompt files included) and what a golden was proven
    against (`assert`, `inform`, `ignore`, `witness`, `relations`): a tolerance that is edited has not been held against
    the spread that was observed, so the golden is stale until it is proven again. Left out are `summary`, `tags`,
    `owner`, `platforms`, `time_limit_s` and the reasons in `ignore`. Comments, key order and number spelling change
    nothing.
    """
    meaning = {
        "model": model,
        "engine": dict(engine),
        "ranks": ranks,
        "workload": _as_map(workload) | {"prompts": [_as_map(prompt) for prompt in workload.prompts]},
        "assert": {name: _as_map(rule) for name, rule in rules.asserted.items()},
        "inform": sorted(rules.informed),
        "ignore": sorted(rules.ignored),
        "witness": [str(witness) for witness in witnesses],
        "relations": [[relation.kind, relation.other] for relation in relations],
    }
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _as_map(value: Prompt | Workload | Rule) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}
