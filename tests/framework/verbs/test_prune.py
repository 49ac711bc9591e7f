from __future__ import annotations

from pathlib import Path

import pytest

from tests.framework.toy_root import ToyRoot, make_toy_root


@pytest.fixture
def toy(tmp_path: Path) -> ToyRoot:
    root = make_toy_root(tmp_path / "root")
    root.write("deep/a")
    put(root.golden_path("deep/a"))
    return root


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a golden")
    return path


def test_what_nobody_reads_goes_with_its_folders_and_the_rest_stays(toy: ToyRoot) -> None:
    gone = put(toy.golden_path("old/deeper/gone"))
    other_platform = put(toy.golden_path("deep/a").with_name("nvidia-h200.json"))
    code, document = toy.json("prune", "--yes")
    assert (code, document["schema"]) == (0, "golden.prune/1")
    assert {Path(entry["path"]): entry["reason"] for entry in document["goldens"]} == {
        gone: "there is no fixture old/deeper/gone",
        other_platform: "deep/a is for cpu, not for nvidia-h200",
    }
    assert document["removed"] == [str(other_platform), str(gone)]
    left = sorted(path.relative_to(toy.path / "goldens").as_posix() for path in (toy.path / "goldens").rglob("*"))
    assert left == ["deep", "deep/a", "deep/a/cpu.json"]
    done = toy.golden("prune", "--yes")
    assert (done.returncode, done.stdout) == (0, "every golden is read by a fixture; nothing to remove.\n")


def test_what_is_no_golden_stays_with_its_folder(toy: ToyRoot) -> None:
    note = put(toy.golden_path("gone").with_name("README.md"))
    put(toy.golden_path("gone"))
    assert toy.golden("prune", "--yes").returncode == 0
    assert [path.name for path in note.parent.iterdir()] == ["README.md"]


def test_a_manifest_that_cannot_be_read_stops_it(toy: ToyRoot) -> None:
    gone = put(toy.golden_path("gone"))
    (toy.path / "fixtures" / "broken.yaml").write_text("manifest: [")
    done = toy.golden("prune", "--yes")
    assert done.returncode == 10
    assert "nothing was removed" in done.stderr
    assert gone.is_file()


def test_without_any_manifest_nothing_is_pruned(toy: ToyRoot) -> None:
    (toy.path / "fixtures" / "deep" / "a.yaml").unlink()
    done = toy.golden("prune", "--yes")
    assert done.returncode == 13
    assert toy.golden_path("deep/a").is_file()


@pytest.mark.parametrize(("arguments", "variables"), [(("--yes",), {"CI": "1"}), ((), {}), (("deep/a", "--yes"), {})])
def test_it_is_refused_under_ci_unasked_or_filtered(
    toy: ToyRoot,
    arguments: tuple[str, ...],
    variables: dict[str, str],
) -> None:
    gone = put(toy.golden_path("gone"))
    assert toy.golden("prune", *arguments, stdin="y\n", **variables).returncode == 2
    assert gone.is_file()


def test_links_are_never_followed_out_of_the_goldens(toy: ToyRoot, tmp_path: Path) -> None:
    outside = put(tmp_path / "outside" / "inner" / "cpu.json")
    (toy.path / "goldens" / "linked").symlink_to(tmp_path / "outside")
    alias = toy.golden_path("alias")
    alias.parent.mkdir()
    alias.symlink_to(outside)
    code, document = toy.json("prune", "--yes")
    assert code == 0
    assert document["not_followed"] == [str(toy.path / "goldens" / "linked")]
    assert document["removed"] == [str(alias)]
    assert outside.read_text() == "a golden"
    assert not alias.parent.exists()


def test_another_name_of_a_golden_that_is_read_is_not_removed(toy: ToyRoot) -> None:
    """As on a disk that ignores case, where `Deep/a` and `deep/a` are one file."""
    spelt = toy.path / "goldens" / "Deep" / "a" / "cpu.json"
    spelt.parent.mkdir(parents=True)
    spelt.hardlink_to(toy.golden_path("deep/a"))
    code, document = toy.json("prune", "--yes")
    assert (code, document["goldens"]) == (0, [])
    assert spelt.is_file()
