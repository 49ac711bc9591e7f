from __future__ import annotations

from framework.report.timing import Timing


def test_the_share_of_the_framework_is_what_no_engine_took() -> None:
    timing = Timing(wall=10.0, engine=9.6)
    assert timing.in_words() == "The framework around the engine took 0.4 s of 10.0 s (4%)."
    assert timing.as_json() == {
        "wall_seconds": 10.0,
        "engine_seconds": 9.6,
        "framework_seconds": 0.4,
        "framework_share": 0.04,
    }


def test_a_clock_that_is_coarse_gives_no_negative_share() -> None:
    assert Timing(wall=0.0, engine=0.1).share == 0.0
    assert Timing(wall=1.0, engine=1.1).framework == 0.0
