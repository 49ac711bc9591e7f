"""What makes a golden stale: the hash of the part of a manifest that decides what is run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from framework.manifest.fixture import Prompt, Workload


def manifest_sha256(*, model: str, engine: Mapping[str, Any], ranks: int, workload: Workload) -> str:
    """Return the SHA-256 over the canonical JSON of what a fixture runs.

    It covers `model`, `engine`, `ranks` and `workload`, prompt files included, with defaults filled in: a golden is
    stale when another thing would be run. The rules are left out on purpose. They decide how values are judged, and a
    run is judged by them at once: a tolerance that is edited needs no new golden, and a field that is newly asserted
    is found missing in the golden. Left out are also `summary`, `tags`, `owner`, `platforms`, `time_limit_s`, and
    `witness` and `relations`, which are checked on the run. Comments, key order and number spelling change nothing.
    """
    plain = _as_map(workload) | {"prompts": [_as_map(prompt) for prompt in workload.prompts]}
    meaning = {"model": model, "engine": dict(engine), "ranks": ranks, "workload": plain}
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _as_map(value: Prompt | Workload) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}
