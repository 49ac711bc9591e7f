"""How long `golden lint` takes over ten thousand manifests, in a process of its own.

    python -m tests.performance.lint_ten_thousand [--manifests 10000] [--rounds 3]

Beside it stands the time that a plain C parser takes to read the same files, in turn with it: the floor.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).parents[2]
MODEL = "storyteller-llama-1m"
MANIFEST = """\
manifest: 1
name: {name}
summary: "Number {number}: what a fixture of this kind proves, in a sentence."
tags: [scheduling, async]
model: {model}
engine: {{max_tokens: {budget}, enable_chunked_prefill: {chunked}}}
workload:
  prompts:
    - Once upon a time there lived a person called Nora, a miller from Little Harbour.
    - {{text: The capital of France is, sampling: {{max_new_tokens: {count}}}, arrival_step: {step}}}
    - {{token_ids: [{ids}]}}
  sampling: {{max_new_tokens: 24, ignore_eos: true, logprobs: true}}
assert:
  generated_tokens: exact
  generated_text: exact
  finish_reason: exact
  generated_logprobs: {{atol: 5.0e-5, rtol: 0.0}}
  counters: {{"*": exact}}
inform: [performance]
witness:
  - counters.step_count > {step}
"""


def write_workspace(root: Path, count: int) -> None:
    """Write manifests in folders of a hundred."""
    shutil.copytree(REPOSITORY / "fixtures" / "models" / MODEL, root / "fixtures" / "models" / MODEL)
    (root / "goldens").mkdir()
    for number in range(count):
        name = f"group{number // 100:03}/case{number:05}"
        path = root / "fixtures" / f"{name}.yaml"
        path.parent.mkdir(exist_ok=True)
        text = MANIFEST.format(
            name=name,
            number=number,
            model=MODEL,
            budget=256 + number % 100,
            chunked="true" if number % 2 else "false",
            count=1 + number % 60,
            step=number % 20,
            ids=", ".join(str((number * 31 + place) % 1000) for place in range(24)),
        )
        path.write_text(text, encoding="utf-8")


def lint(root: Path) -> tuple[float, float]:
    """Return the seconds and the CPU seconds of one lint in a fresh process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "framework", "--root", str(root), "lint", "--json"],
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    return seconds, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def parse(root: Path) -> float:
    """Return the seconds that reading the files with PyYAML's C parser takes."""
    start = time.perf_counter()
    for path in sorted((root / "fixtures").rglob("*.yaml")):
        yaml.load(path.read_bytes(), Loader=yaml.CSafeLoader)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--manifests", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_workspace(root, arguments.manifests)
        floors, walls, cpus = [], [], []
        for _ in range(arguments.rounds):
            floors.append(parse(root))
            wall, cpu = lint(root)
            walls.append(wall)
            cpus.append(cpu)
    print(f"{arguments.manifests} manifests, {arguments.rounds} rounds, medians (least to most)")
    for what, values in (("lint, wall", walls), ("lint, CPU", cpus), ("C parser alone", floors)):
        print(f"{what:16} {statistics.median(values):6.2f} s  ({min(values):.2f} to {max(values):.2f})")
    print(f"lint over parser {statistics.median(walls) / statistics.median(floors):6.2f}")


if __name__ == "__main__":
    main()
