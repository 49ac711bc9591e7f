from __future__ import annotations

import pytest

from framework.manifest.suggest import did_you_mean


@pytest.mark.parametrize(
    ("name", "valid", "expected"),
    [
        ("max_token", ["max_tokens", "seed"], 'Did you mean "max_tokens"?'),
        ("MAX_TOKENS", ["max_tokens"], 'Did you mean "max_tokens"?'),
        ("zzz", ["b", "a"], "There are: a, b."),
        ("zzz", [str(number) for number in range(50)], ""),
        ("zzz", [], ""),
        ("x" * 1_000_000, ["a"], "There are: a."),
    ],
)
def test_the_nearest_name_is_suggested(name: str, valid: list[str], expected: str) -> None:
    assert did_you_mean(name, valid) == expected
