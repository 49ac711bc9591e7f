from __future__ import annotations

from engine.timing import Timing


def test_a_summary_without_any_sample_says_not_available() -> None:
    assert Timing().summary().count("n/a") == 3


def test_an_async_burst_has_no_prefill_sample_and_its_summary_says_so() -> None:
    timing = Timing(generated_token_count=1)
    timing.add_step(0.5, resolved=False, has_prefill=True)
    timing.add_step(0.25, resolved=True, has_prefill=False)
    assert timing.prefill_seconds == []
    assert "prefill step       n/a (no samples)" in timing.summary()
    assert "decode step        250.00 ms (median of 1)" in timing.summary()
    assert "1.3 tokens/s" in timing.summary()


def test_a_step_that_launches_a_prefill_and_resolves_counts_as_a_prefill_sample() -> None:
    timing = Timing()
    timing.add_step(0.5, resolved=True, has_prefill=True)
    assert timing.prefill_seconds == [0.5]
