from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from engine.numerics.exact import exp_of_negative, log

REPOSITORY = Path(__file__).parents[3]
DIGEST = """
import hashlib, torch
from engine.numerics.exact import exp_of_negative, log
numbers = (torch.arange(1, 10_000, dtype=torch.float64) / 10_007).contiguous()
results = torch.cat((exp_of_negative(numbers * -37), log(numbers), log(-log(numbers))))
print(hashlib.sha256(results.numpy().tobytes()).hexdigest(), torch.backends.cpu.get_cpu_capability())
"""


def one(value: float) -> torch.Tensor:
    return torch.tensor([value], dtype=torch.float64)


@given(st.floats(-690, 0))
def test_exp_is_right_to_twelve_digits(value: float) -> None:
    assert exp_of_negative(one(value)).item() == pytest.approx(math.exp(value), rel=1e-12, abs=0)


@given(st.floats(1e-300, 1e300))
def test_log_is_right_to_twelve_digits(value: float) -> None:
    assert log(one(value)).item() == pytest.approx(math.log(value), rel=1e-12, abs=0)


def test_exp_of_nothing_is_one_and_of_minus_infinity_next_to_nothing() -> None:
    assert exp_of_negative(one(0.0)).item() == 1.0
    assert 0 <= exp_of_negative(one(-math.inf)).item() < 1e-300


def test_log_keeps_its_digits_beside_one() -> None:
    nearest = 1 - 2**-53
    assert log(one(nearest)).item() == math.log(nearest)
    assert log(one(1.0)).item() == 0.0


def test_an_argument_is_left_as_it_is() -> None:
    values = torch.tensor([-3.0, -0.5], dtype=torch.float64)
    exp_of_negative(values)
    assert values.tolist() == [-3.0, -0.5]


def test_the_bits_are_the_same_under_every_instruction_set() -> None:
    digests, capabilities = set(), set()
    for name in ("default", "avx2", None):
        variables = {"ATEN_CPU_CAPABILITY": name} if name else {}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST],
            cwd=REPOSITORY,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        digest, capability = done.stdout.split(maxsplit=1)
        digests.add(digest)
        capabilities.add(capability)
    assert len(digests) == 1
    assert len(capabilities) > 1 or "DEFAULT" in capabilities
