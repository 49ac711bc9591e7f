"""What reading a golden of 16 MB costs beside `json.load`, and how long `golden compare` takes to begin.

    python -m tests.performance.large_golden [--rounds 7]

Both ways of reading alternate in one run. Reading a golden means its seal, canonical form and shape; comparing it with
itself is timed beside that.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from framework.compare.compare import compare_records
from framework.compare.rules import parse_rules
from framework.golden.document import build_golden
from framework.golden.seal import sealed_bytes
from framework.golden.store import read_golden

REPOSITORY = Path(__file__).parents[2]
RULES = {"assert": {"generated_tokens": "exact", "generated_logprobs": {"atol": 1e-4, "rtol": 0.0}}}
SIZE = 16_000_000


def golden_bytes(size: int) -> bytes:
    """Return a golden of about `size` bytes: requests of a thousand tokens with log-probabilities and margins."""
    requests: dict[str, Any] = {}
    numbers = [-((place * 7919) % 100_003) / 100_003 for place in range(1000)]
    request = {
        "prompt_tokens": list(range(100)),
        "generated_tokens": [(place * 31) % 50_000 for place in range(1000)],
        "generated_logprobs": numbers,
        "margins": [-number for number in numbers],
    }
    for index in range(size // len(json.dumps(request))):
        requests[str(index)] = request
    record = {"schema": "golden.record/1", "fixture": "large", "requests": requests, "settings": {}, "environment": {}}
    golden = build_golden(
        record,
        parse_rules(RULES),
        platform="cpu",
        hashes={"model": "0" * 64, "tokenizer": "0" * 64},
        manifest_sha256="0" * 64,
        provenance={"reason": "to be measured"},
    )
    return sealed_bytes(golden)


def seconds(action: Callable[[], object]) -> float:
    """Return how long an action takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def begin() -> None:
    """Start `golden compare` on files that are not there: all that it needs is imported, nothing is read."""
    command = [sys.executable, "-m", "framework", "compare", "--rules", "none.yaml", "none.json", "none.json"]
    subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=False)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "cpu.json")
        path.write_bytes(golden_bytes(SIZE))
        document = read_golden(path).document
        rules = parse_rules(RULES)
        times: dict[str, list[float]] = {"json.load": [], "read_golden": [], "compare": [], "begin": []}
        for number in range(arguments.rounds + 1):
            once = {
                "json.load": seconds(lambda: json.loads(path.read_bytes())),
                "read_golden": seconds(lambda: read_golden(path)),
                "compare": seconds(lambda: compare_records(document, document, rules)),
                "begin": seconds(begin),
            }
            if number:
                for name, value in once.items():
                    times[name].append(value)
        print(f"{path.stat().st_size / 1e6:.1f} MB, {arguments.rounds} rounds, medians (least to most)")
    for name, values in times.items():
        print(f"{name:12} {statistics.median(values):.3f} s  ({min(values):.3f} to {max(values):.3f})")
    ratios = [mine / floor for mine, floor in zip(times["read_golden"], times["json.load"], strict=True)]
    print(f"read_golden over json.load: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
