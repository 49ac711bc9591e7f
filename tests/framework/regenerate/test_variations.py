from __future__ import annotations

from pathlib import Path
from typing import Any

from framework.compare.rules import Rules
from framework.manifest.fixture import Fixture, Prompt, Workload
from framework.regenerate.variations import variations
from tests.framework.toy_adapter import ToyEngine


def described(engine: dict[str, Any], *prompts: Prompt, requests_per_step: int | None = None) -> list[Any]:
    workload = Workload(prompts=prompts, sampling={}, requests_per_step=requests_per_step)
    fixture = Fixture("a", Path(), "", "", engine, workload, Rules(asserted={}))
    return [(dict(each.overrides), each.order) for each in variations(fixture, ToyEngine())]


A, B = Prompt(text="a"), Prompt(text="b")
THREADS: list[Any] = [({"num_threads": 1}, None), ({"num_threads": 2}, None)]
LEGACY = ({"async_sched_mode": "legacy"}, None)


def test_an_unpinned_mode_a_free_order_and_threads_are_varied() -> None:
    assert described({}, A, B) == [*THREADS, LEGACY, ({}, (1, 0))]


def test_a_pinned_mode_stays() -> None:
    assert described({"async_sched_mode": "async"}, A) == THREADS


def test_an_order_that_arrivals_fix_stays() -> None:
    assert described({}, A, B, requests_per_step=1) == [*THREADS, LEGACY]


def test_settings_that_do_not_go_together_are_not_tried() -> None:
    assert described({"fault": "hang"}, A) == THREADS
