"""Tokens a second of the engine and of transformers on one workload, paired and alternating in one run.

    python -m tests.performance.throughput_against_transformers [--model DIR] [--dtype bf16] [--rounds 5]

Thirty-two requests with prompts of 8 to 128 tokens, 64 to 128 new tokens each, end-of-sequence ignored, batch
invariance on. The peers are transformers' continuous batching and its static batch of all requests, of which only the
tokens that were asked for count. Each round runs all three, in an order that rotates; the first round warms up and is
not counted. Speed is not bought with errors: every token the engine chose is scored by transformers in fp32.

Progress goes to stderr, a line a run with its tokens a second; the result, or with --json one document, to stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import torch
import transformers

from engine.config import InferenceConfig
from engine.engine import DTYPES, Engine
from engine.request import Request, SamplingParams

MODEL = Path(__file__).parents[2] / "fixtures" / "models" / "smollm2-135m-instruct"
SEED = 20240609
REQUESTS = 32
PROMPT_LENGTHS = (8, 128)
NEW_TOKENS = (64, 128)
KV_TOKENS = REQUESTS * (PROMPT_LENGTHS[1] + NEW_TOKENS[1])
LARGEST_DEFICIT = {"fp32": 1e-3, "bf16": 1.0}
"""How far a chosen token's logit may lie below the best by the fp32 oracle; bf16 rounds its hidden states."""

Outputs: TypeAlias = list[list[int]]


class Way(Protocol):
    """One way of generating."""

    name: str

    def __call__(self, requests: Sequence[tuple[list[int], int]]) -> Outputs:
        """Return the generated ids of each request: as many as it asks for."""


def workload(vocabulary_size: int) -> list[tuple[list[int], int]]:
    """Return each request's prompt ids and number of new tokens."""
    generator = torch.Generator().manual_seed(SEED)

    def between(bounds: tuple[int, int]) -> list[int]:
        numbers: list[int] = torch.randint(bounds[0], bounds[1] + 1, (REQUESTS,), generator=generator).tolist()
        return numbers

    lengths, counts = between(PROMPT_LENGTHS), between(NEW_TOKENS)
    return [
        (torch.randint(vocabulary_size, (length,), generator=generator).tolist(), count)
        for length, count in zip(lengths, counts, strict=True)
    ]


class OwnEngine:
    """The engine of this project."""

    name = "engine"

    def __init__(self, model: Path, dtype: str, threads: int) -> None:
        config = InferenceConfig.from_mapping(
            {"dtype": dtype, "num_threads": threads, "num_blocks": KV_TOKENS // 16},
        )
        self.engine = Engine.load(model, config)

    def __call__(self, requests: Sequence[tuple[list[int], int]]) -> Outputs:
        """Generate."""
        outputs = self.engine.generate(
            Request(str(index), tuple(prompt), SamplingParams(max_new_tokens=count, ignore_eos=True))
            for index, (prompt, count) in enumerate(requests)
        )
        return [list(output.generated_token_ids) for output in outputs]


class StaticBatch:
    """transformers' `generate` on one left-padded batch, as long as its longest request."""

    name = "transformers static batch"

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(self, requests: Sequence[tuple[list[int], int]]) -> Outputs:
        """Generate for the longest, and keep what was asked for."""
        width = max(len(prompt) for prompt, _ in requests)
        ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt, _ in requests])
        mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt, _ in requests])
        longest = max(count for _, count in requests)
        generated = self.model.generate(
            ids, attention_mask=mask, max_new_tokens=longest, do_sample=False, eos_token_id=None, pad_token_id=0
        )
        return [row[width : width + count] for row, (_, count) in zip(generated.tolist(), requests, strict=True)]


class ContinuousBatching:
    """transformers' `generate_batch`, fed with every request at its own length."""

    name = "transformers continuous batching"

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = transformers.ContinuousBatchingConfig(
            num_blocks=2 * REQUESTS, max_batch_tokens=1024, use_cuda_graph=False
        )

    def __call__(self, requests: Sequence[tuple[list[int], int]]) -> Outputs:
        """Generate; every request has its own limit, and so the batch shrinks as it does in the engine."""
        generation = transformers.GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0, max_new_tokens=1)
        with self.model.continuous_batching_context_manager(
            generation_config=generation, continuous_batching_config=self.config
        ) as manager:
            ids = [manager.add_request(prompt, max_new_tokens=count) for prompt, count in requests]
            done: dict[str, list[int]] = {}
            while len(done) < len(ids):
                result = manager.get_result(timeout=1)
                if result is not None and result.is_finished():
                    done[result.request_id] = list(result.generated_tokens)
        return [done[request_id] for request_id in ids]


def timed(way: Way, requests: Sequence[tuple[list[int], int]]) -> tuple[float, float, Outputs]:
    """Return useful tokens a second, the CPU seconds of all threads, and what was generated."""
    start, start_cpu = time.perf_counter(), time.process_time()
    outputs = way(requests)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
    asked = [count for _, count in requests]
    assert [len(output) for output in outputs] == asked, "every request has the number of tokens it asked for"
    return sum(asked) / seconds, cpu_seconds, outputs


@torch.inference_mode()
def largest_deficit(oracle: Any, requests: Sequence[tuple[list[int], int]], outputs: Outputs) -> float:
    """Return how far the logit of a chosen token ever lies below the best one, by the fp32 oracle."""
    worst = 0.0
    for (prompt, _), generated in zip(requests, outputs, strict=True):
        logits = oracle(torch.tensor([prompt + generated])).logits[0, len(prompt) - 1 : -1]
        chosen = logits.gather(1, torch.tensor(generated)[:, None])[:, 0]
        worst = max(worst, float((logits.amax(-1) - chosen).max()))
    return worst


def copied_bytes_a_second() -> float:
    """Return the memory bandwidth of a large copy, bytes read and written."""
    source = torch.ones(1 << 27, dtype=torch.uint8)
    target = torch.empty_like(source)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        target.copy_(source)
        best = min(best, time.perf_counter() - start)
    return 2 * source.nbytes / best


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path, default=MODEL)
    parser.add_argument("--dtype", choices=sorted(DTYPES), default="bf16")
    parser.add_argument("--rounds", type=int, default=5, help="counted rounds")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()

    tell(f"loading {arguments.model.name} in {arguments.dtype}, {arguments.threads} threads")

    def pretrained(dtype: torch.dtype) -> Any:
        return transformers.AutoModelForCausalLM.from_pretrained(arguments.model, dtype=dtype).eval()

    peer = pretrained(DTYPES[arguments.dtype])
    own = OwnEngine(arguments.model, arguments.dtype, arguments.threads)
    ways: list[Way] = [own, ContinuousBatching(peer), StaticBatch(peer)]
    requests = workload(peer.config.vocab_size)
    speeds: dict[str, list[float]] = {way.name: [] for way in ways}
    cpu_seconds: dict[str, list[float]] = {way.name: [] for way in ways}
    outputs: Outputs = []
    for round_index in range(arguments.rounds + 1):
        for way in ways[round_index % len(ways) :] + ways[: round_index % len(ways)]:
            speed, cpu, generated = timed(way, requests)
            name = f"round {round_index}" if round_index else "warm-up"
            tell(f"{name}: {way.name:34} {speed:7.1f} tokens/s, {cpu:5.1f} CPU seconds")
            if way is own:
                assert round_index == 0 or generated == outputs, "the engine's tokens are the same in every round"
                outputs = generated
            if round_index:
                speeds[way.name].append(speed)
                cpu_seconds[way.name].append(cpu)
    own.engine.close()
    tell("scoring every token that the engine chose")
    deficit = largest_deficit(pretrained(torch.float32), requests, outputs)
    assert deficit <= LARGEST_DEFICIT[arguments.dtype], f"a chosen token lies {deficit} below the best"
    report(arguments, requests, speeds, cpu_seconds, deficit, sum(parameter.nbytes for parameter in peer.parameters()))


def tell(progress: str) -> None:
    """Say where the run is."""
    print(f"{progress}  (load {os.getloadavg()[0]:.1f})", file=sys.stderr, flush=True)


def report(
    arguments: argparse.Namespace,
    requests: Sequence[tuple[list[int], int]],
    speeds: dict[str, list[float]],
    cpu_seconds: dict[str, list[float]],
    deficit: float,
    weight_bytes: int,
) -> None:
    """Print each way's tokens a second, the engine's ratio to the better peer of each round, and the floor."""
    own, *peers = speeds
    ratios = [mine / max(speeds[peer][index] for peer in peers) for index, mine in enumerate(speeds[own])]
    floor = weight_bytes / copied_bytes_a_second()
    # A step gives every request that still runs a token: no way of batching can do with fewer steps than the longest.
    least_steps = max(count for _, count in requests)
    share = least_steps * floor * statistics.median(speeds[own]) / sum(count for _, count in requests)
    document = {
        "model": arguments.model.name,
        "dtype": arguments.dtype,
        "threads": arguments.threads,
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tokens_per_second": speeds,
        "cpu_seconds": cpu_seconds,
        "ratio_to_better_peer": ratios,
        "median_ratio": statistics.median(ratios),
        "largest_logit_deficit": deficit,
        "floor_seconds_a_step": floor,
        "share_of_floor": share,
    }
    if arguments.json:
        print(json.dumps(document, indent=2))
        return
    for name, values in speeds.items():
        cpu = statistics.median(cpu_seconds[name])
        spread = f"({min(values):.1f} to {max(values):.1f})"
        print(f"{name:34} {statistics.median(values):7.1f} tokens/s  {spread}, {cpu:.1f} CPU seconds")
    print(f"engine over the better peer: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    print(f"largest logit deficit of a chosen token, by transformers in fp32: {deficit:.3g}")
    print(
        f"reading every weight once takes {1e3 * floor:.1f} ms a step at the bandwidth of a copy: "
        f"the engine runs at {share:.0%} of what {least_steps} such steps would allow"
    )


if __name__ == "__main__":
    main()
