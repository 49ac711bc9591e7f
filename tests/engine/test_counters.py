from __future__ import annotations

import csv
from pathlib import Path

import pytest

from engine.config import InferenceConfig
from engine.counters import Counters
from engine.limits import Limits
from engine.loop import StepLoop
from engine.request import Request, SamplingParams
from tests.engine.simulated_device import EOS, VOCAB_SIZE, SimulatedDevice

ORACLE = Path(__file__).parents[3] / "shared" / "oracles" / "counters.tsv"

# (mode, prompt lengths, requests a step or None, new tokens, max_tokens, chunked): counters that a production engine
# wrote into its golden files for these shapes.
BURST = (88,)
MANY = (225,) * 127 + (312,)
SHAPES = {
    ("legacy", BURST, None, 30, 16384, False): {"step_count": 30, "async_sched_step_count": 0},
    ("async", BURST, None, 30, 16384, False): {"step_count": 31, "async_sched_step_count": 30},
    ("legacy", (5,), None, 16, 16384, False): {"step_count": 16, "lifetime_prefill_token_count": 5},
    ("legacy", BURST, None, 100, 16384, False): {"step_count": 100, "async_sched_compaction_step_count": 0},
    ("legacy", BURST, None, 30, 64, True): {"step_count": 31, "lifetime_prefill_token_count": 88},
    ("legacy", MANY, None, 128, 16384, False): {"step_count": 129, "lifetime_prefill_token_count": 28887},
    ("async", MANY, 32, 128, 16384, False): {
        "step_count": 132,
        "async_sched_step_count": 131,
        "async_sched_compaction_step_count": 4,
        "lifetime_prefill_token_count": 28887,
    },
}


def counters_of(
    mode: str, prompts: tuple[int, ...], per_step: int | None, new_tokens: int, max_tokens: int, chunked: bool
) -> dict[str, int]:
    config = InferenceConfig.from_mapping(
        {"async_sched_mode": mode, "max_tokens": max_tokens, "enable_chunked_prefill": chunked}
    )
    limits = Limits.of(config, vocab_size=VOCAB_SIZE, max_position_embeddings=2048)
    loop = StepLoop(config, limits, SimulatedDevice(config), frozenset({EOS}))
    for index, length in enumerate(prompts):
        sampling = SamplingParams(max_new_tokens=new_tokens, ignore_eos=True)
        tokens = tuple((index + place) % VOCAB_SIZE for place in range(length))
        loop.submit(Request(str(index), tokens, sampling, arrival_step=index // per_step if per_step else 0))
    while loop.busy:
        loop.step()
    return loop.counters.as_dict()


@pytest.mark.parametrize("shape", list(SHAPES), ids=lambda shape: f"{shape[0]}-{len(shape[1])}x{shape[3]}-{shape[4]}")
def test_a_workload_has_the_counters_that_a_production_engine_recorded(
    shape: tuple[str, tuple[int, ...], int | None, int, int, bool],
) -> None:
    counters = counters_of(*shape)
    assert {name: counters[name] for name in SHAPES[shape]} == SHAPES[shape]


@pytest.mark.skipif(not ORACLE.is_file(), reason="the oracle's table of counters is not beside this checkout")
def test_every_row_of_the_oracle_is_reproduced() -> None:
    lines = [line for line in ORACLE.read_text().splitlines() if not line.startswith("#")]
    rows = list(csv.DictReader(lines, delimiter="\t"))
    assert rows
    for row in rows:
        count, total = int(row["requests"]), int(row["prompt_tokens_total"])
        prompts = (total // count,) * (count - 1) + (total - total // count * (count - 1),)
        per_step = None if row["arrivals"] == "all_at_start" else int(row["arrivals"].split()[0])
        counters = counters_of(
            row["mode"],
            prompts,
            per_step,
            int(row["new_tokens_each"]),
            int(row["max_tokens"]),
            row["chunked_prefill"] == "yes",
        )
        recorded = {name: int(value) for name, value in row.items() if name in counters and value != "-"}
        assert len(recorded) >= 3
        assert {name: counters[name] for name in recorded} == recorded, row["shape"]


def test_one_request_with_one_new_token_takes_a_primer_and_an_async_step() -> None:
    counters = counters_of("async", (5,), None, 1, 64, False)
    assert (counters["step_count"], counters["async_sched_step_count"], counters["primer_step_count"]) == (2, 1, 1)


def test_counters_all_start_at_zero() -> None:
    assert set(Counters().as_dict().values()) == {0}


def test_routing_is_counted_only_where_it_is_recorded() -> None:
    own = {"routing_recorded_token_count", "routing_replayed_token_count"}
    assert Counters.of_routing().as_dict().keys() - Counters().as_dict().keys() == own
    counters = Counters.of_routing()
    counters.add_routing(5, replayed=False)
    counters.add_routing(7, replayed=True)
    assert (counters.routing_recorded_token_count, counters.routing_replayed_token_count) == (12, 7)
