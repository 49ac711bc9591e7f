from __future__ import annotations

import math

import pytest

from framework.explain.precision import dtype_of, margin_in_ulps, unit_in_the_last_place


@pytest.mark.parametrize(
    ("value", "dtype", "unit"),
    [(16.0, "bf16", 0.125), (31.9, "bf16", 0.125), (-32.0, "bf16", 0.25), (1.0, "fp32", 2**-23), (1.0, "fp16", 2**-10)],
)
def test_a_unit_in_the_last_place_grows_with_its_binade(value: float, dtype: str, unit: float) -> None:
    assert unit_in_the_last_place(value, dtype) == unit


def test_a_unit_is_the_distance_to_the_next_number() -> None:
    # fp32 has 29 bits fewer than the doubles that Python has.
    assert unit_in_the_last_place(12.5, "fp32") == math.ulp(12.5) * 2**29


def test_a_margin_is_measured_at_the_runner_up() -> None:
    assert margin_in_ulps(0.25, -15.75, "bf16") == (2.0, 16.0)


@pytest.mark.parametrize(
    ("margin", "logprob", "dtype"),
    [
        (1.0, None, "bf16"),
        (1.0, -1.0, None),
        (math.nan, -1.0, "bf16"),
        (1.0, -math.inf, "bf16"),
        (0.0, 0.0, "bf16"),
        (0.0, -5e-324, "fp32"),
        (1e308, -1e308, "fp32"),
    ],
)
def test_what_is_not_known_has_no_units(margin: float, logprob: float | None, dtype: str | None) -> None:
    assert margin_in_ulps(margin, logprob, dtype) is None


def test_the_dtype_is_a_setting_or_stands_in_the_environment() -> None:
    assert dtype_of({"settings": {"dtype": {"value": "bf16"}}, "environment": {"dtype": "float32"}}) == "bf16"
    assert dtype_of({"settings": {"dtype": {"value": "auto"}}, "environment": {"dtype": "float32"}}) == "float32"
    assert dtype_of({"settings": [], "environment": {"dtype": 3}}) is None
