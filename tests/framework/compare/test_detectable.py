from __future__ import annotations

import math
import random
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framework.compare.detectable import minimum_detectable_effect, relative_error_of_median

SAMPLES = st.lists(st.floats(1e-3, 1e3), min_size=5, max_size=30)


def test_samples_without_spread_show_any_change() -> None:
    assert minimum_detectable_effect([2.0] * 5, [3.0] * 5) == 0.0
    assert relative_error_of_median([2.0] * 5) == 0.0


@pytest.mark.parametrize(
    "side", [1.0, [], [1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.nan], [1.0, "1"], [1, True], None]
)
def test_what_is_no_list_of_samples_says_nothing(side: Any) -> None:
    assert minimum_detectable_effect(side, side) is None


@given(SAMPLES, SAMPLES, st.floats(1e-3, 1e3))
def test_the_effect_knows_neither_units_nor_which_side_is_the_golden(
    golden: list[float], current: list[float], unit: float
) -> None:
    effect = minimum_detectable_effect(golden, current)
    assert effect is not None
    assert effect >= 0.0
    assert minimum_detectable_effect(current, golden) == pytest.approx(effect)
    scaled = minimum_detectable_effect([value * unit for value in golden], current)
    assert scaled == pytest.approx(effect, rel=1e-6, abs=1e-9)


def test_four_times_the_samples_show_half_the_change() -> None:
    few, many = [0.9, 1.0, 1.1] * 4, [0.9, 1.0, 1.1] * 16
    assert relative_error_of_median(many) == pytest.approx(relative_error_of_median(few) / 2, rel=0.05)


def test_a_change_of_the_detectable_size_is_found_about_four_times_in_five() -> None:
    generator = random.Random(7)  # noqa: S311 - not for a secret
    found, tried, sigma, count = 0, 2000, 0.1, 9
    for _ in range(tried):
        golden, current = ([math.exp(generator.gauss(0.0, sigma)) for _ in range(count)] for _ in range(2))
        effect = minimum_detectable_effect(golden, current)
        assert effect is not None
        moved = math.log(statistics.median(current) * (1.0 + effect) / statistics.median(golden))
        error = math.hypot(relative_error_of_median(golden), relative_error_of_median(current))
        found += moved > 2.306 * error
    assert 0.7 < found / tried < 0.95
