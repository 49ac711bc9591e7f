from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from framework.explain.overview import Overview, overview
from framework.explain.overview_text import SCREEN_LINES, overview_lines
from framework.golden.revisions import Tree
from framework.golden.seal import sealed_bytes


def golden(name: str, **parts: Any) -> dict[str, Any]:
    return {
        "schema": "golden.golden/1",
        "fixture": name,
        "platform": "cpu",
        "requests": {"0": {"prompt_tokens": [1], "generated_tokens": [2, 3], "generated_logprobs": [-1.0, -1.0]}},
        "counters": {"steps": 3},
        "settings": {"mode": {"value": "async", "source": "default"}},
        "environment": {},
        "hashes": {},
        "manifest_sha256": "m",
        "provenance": {"reason": f"why {name}", "date": "2026-01-02"},
        **parts,
    }


def request(tokens: list[int], logprobs: list[float]) -> dict[str, Any]:
    return {"0": {"prompt_tokens": [1], "generated_tokens": tokens, "generated_logprobs": logprobs}}


def tree(folder: Path, files: dict[str, bytes]) -> Tree:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    names = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    return Tree(folder.parent, folder.name, None, names)


def between(tmp_path: Path, old: dict[str, Any], new: dict[str, Any]) -> Overview:
    sides = [
        {f"{name}/cpu.json": each if isinstance(each, bytes) else sealed_bytes(each) for name, each in side.items()}
        for side in (old, new)
    ]
    goldens = tree(tmp_path / "old", sides[0]), tree(tmp_path / "new", sides[1])
    return overview(goldens, (Tree(tmp_path, "none", None, {}), Tree(tmp_path, "none", None, {})))


def lines_of(found: Overview) -> list[str]:
    return overview_lines(found, "base", "head")


def test_the_worst_comes_first(tmp_path: Path) -> None:
    names = ("gone", "garbled", "token", "drift", "counter", "reason")
    old = {name: golden(name) for name in names}
    new: dict[str, Any] = {
        "reason": golden("reason", provenance={"reason": "another", "date": "2026-01-03"}),
        "counter": golden("counter", counters={"steps": 4}),
        "drift": golden("drift", requests=request([2, 3], [-1.0, -1.5])),
        "token": golden("token", requests=request([2, 9], [-1.0, -1.0])),
        "garbled": b"{",
        "come": golden("come"),
    }
    found = between(tmp_path, old, new)
    assert [entry.fixture for entry in found.goldens] == [
        "garbled",
        "gone",
        "token",
        "drift",
        "counter",
        "reason",
        "come",
    ]
    text = "\n".join(lines_of(found))
    assert "token/cpu.json: 1 TOKEN\n  why (2026-01-02): why token\n" in text
    assert 'largest log-prob move: 0.5 at requests["0"].generated_logprobs[1]' in text
    assert "reason/cpu.json: no compared value changed\n  why (2026-01-03): another" in text


def test_one_screen_is_enough_for_any_number(tmp_path: Path) -> None:
    names = [f"group/fixture_{index:03}" for index in range(300)]
    old = {name: golden(name) for name in names}
    mode = {"mode": {"value": "legacy", "source": "default"}}
    new = {name: golden(name, counters={"steps": 5}, settings=mode) for name in names}
    new[names[250]] = golden(names[250], requests=request([7, 7], [-9.0, -9.0]), settings=mode)
    lines = lines_of(between(tmp_path, old, new))
    assert len(lines) <= SCREEN_LINES
    assert max(map(len, lines)) <= 200
    first = next(line for line in lines if "cpu.json" in line)
    assert first.startswith("group/fixture_250/cpu.json: ")
    assert any(line.startswith("and 29") and "more goldens (`--json` has them all): group/" in line for line in lines)
    assert "by 300 fixtures (group/fixture_000, " in lines[1]


def test_goldens_that_changed_alike_are_told_together(tmp_path: Path) -> None:
    told = {"provenance": {"reason": "slower now", "date": "2026-01-02"}}
    old = {name: golden(name) for name in "abc"}
    new = {"a": golden("a", counters={"steps": 9}, **told), "b": golden("b", counters={"steps": 9}, **told)}
    new |= {name: golden(name) for name in "cde"}
    lines = lines_of(between(tmp_path, old, new))
    start = lines.index("2 goldens, 1 COUNTER: a/cpu.json, b/cpu.json")
    assert lines[start + 1 : start + 3] == ["  why (2026-01-02): slower now", "  figures: steps 3 → 9"]
    assert lines[-2:] == ["2 goldens, added: d/cpu.json, e/cpu.json", "Not touched: 1 golden."]


def test_samples_are_shown_by_their_median(tmp_path: Path) -> None:
    old, new = ({"a": golden("a", performance={"rate": rates})} for rates in ([1.0, 9.0, 2.0], [4.0, 3.0]))
    lines = lines_of(between(tmp_path, old, new))
    assert "  figures: rate [median 2 of 3] → [median 3.5 of 2]" in lines


def test_who_followed_a_default_who_pins_it_and_who_stayed_behind(tmp_path: Path) -> None:
    pinned = {"mode": {"value": "async", "source": "pinned"}}
    old = {"a": golden("a"), "b": golden("b"), "c": golden("c", settings=pinned), "d": golden("d", settings=pinned)}
    new = {**old, "a": golden("a", settings={"mode": {"value": "legacy", "source": "default"}})}
    new["d"] = golden("d", settings={"mode": {"value": "legacy", "source": "pinned"}})
    found = between(tmp_path, old, new)
    (default,) = found.defaults
    assert (default.followed_by, default.left_behind, default.pinned_by) == (("a",), ("b",), ("c", "d"))
    assert '  also changed: mode "async" (pinned) → "legacy" (pinned)' in lines_of(found)


def test_settings_that_came_and_went_are_named(tmp_path: Path) -> None:
    new = golden("a", settings={"depth": {"value": 1, "source": "default"}})
    lines = lines_of(between(tmp_path, {"a": golden("a")}, {"a": new}))
    assert '  also changed: depth none → 1 (default), mode "async" (default) → none' in lines


def test_a_reason_cannot_move_the_cursor(tmp_path: Path) -> None:
    new = golden("a", provenance={"reason": "\x1b[2Jgone\nfirst/cpu.json: fine", "accepted": {"reason": "seen"}})
    lines = lines_of(between(tmp_path, {"a": golden("a")}, {"a": new}))
    assert '  why (no date): \\u001b[2Jgone\\nfirst/cpu.json: fine; accepted: "seen"' in lines


def test_nothing_changed_is_two_lines(tmp_path: Path) -> None:
    same = {"a": golden("a")}
    assert lines_of(between(tmp_path, same, same)) == [
        "base → head: 0 goldens not the same (0 changed), 1 untouched.",
        "Not touched: 1 golden.",
    ]
