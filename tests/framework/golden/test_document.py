from __future__ import annotations

from framework.compare.rules import parse_rules
from framework.golden.document import build_golden, stored_names

RULES = parse_rules(
    {
        "assert": {"generated_tokens": "exact", "counters": {"step_count": "exact"}},
        "inform": ["performance", "generated_text", "counters"],
    },
    where="test",
    lines={},
)
RECORD = {
    "schema": "golden.record/1",
    "fixture": "a",
    "requests": {
        "0": {"prompt_tokens": [1], "generated_tokens": [2], "generated_text": "two", "margins": [0.5]},
    },
    "counters": {"step_count": 1, "other": 2},
    "performance": {"seconds": 1.0},
    "settings": {},
    "environment": {"machine": "one"},
}


def golden() -> dict[str, object]:
    return build_golden(RECORD, RULES, platform="cpu", hashes={}, manifest_sha256="m", provenance={})


def test_a_golden_holds_what_is_asserted_and_what_explains_it() -> None:
    document = golden()
    assert document["requests"] == {"0": {"prompt_tokens": [1], "generated_tokens": [2], "margins": [0.5]}}
    assert document["counters"] == {"step_count": 1}
    assert "performance" not in document
    assert document["environment"] == {"machine": "one"}


def test_the_stored_names_are_fields_sections_and_entries() -> None:
    assert stored_names(golden()) == {
        "prompt_tokens",
        "generated_tokens",
        "margins",
        "counters",
        "counters.step_count",
        "settings",
        "environment",
    }
