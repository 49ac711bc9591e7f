from __future__ import annotations

from pathlib import Path

import pytest

from tests.framework.regenerate.proven import keep
from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("a", prompts="hello, world")
    root.write("b", prompts="other")
    return root


def test_those_that_are_named_are_dropped_and_no_golden_is_touched(toy: ToyRoot) -> None:
    first, second = keep(toy)
    toy.golden_path("a").parent.mkdir()
    toy.golden_path("a").write_text("in force")
    code, document = toy.json("reject", "a", "--yes")
    assert (code, document["schema"], document["removed"]) == (0, "golden.reject/1", [str(first)])
    assert not first.parent.exists()
    assert second.is_file()
    assert toy.golden_path("a").read_text() == "in force"


def test_all_are_dropped_without_a_name_even_what_cannot_be_read(toy: ToyRoot) -> None:
    first, second = keep(toy)
    first.write_text("<<<<<<< broken")
    (toy.path / "fixtures" / "b.yaml").write_text("broken: [")
    done = toy.golden("reject", "--yes")
    assert done.returncode == 0
    assert "dropped 2 candidate(s)." in done.stdout
    assert not first.exists()
    assert not second.exists()


def test_nothing_is_dropped_where_nobody_can_be_asked(toy: ToyRoot) -> None:
    kept = keep(toy)
    assert toy.golden("reject", stdin="y\n").returncode == 2
    assert all(path.is_file() for path in kept)


@pytest.mark.parametrize("names", [("c",), ("a", "c")])
def test_a_name_that_matches_nothing_drops_nothing(toy: ToyRoot, names: tuple[str, ...]) -> None:
    kept = keep(toy)
    code, document = toy.json("reject", *names, "--yes")
    assert code == 13
    assert "there is a, b" in document["error"]
    assert all(path.is_file() for path in kept)


def test_where_none_waits_there_is_nothing_to_reject(toy: ToyRoot) -> None:
    assert toy.golden("reject", "--yes").returncode == 13
