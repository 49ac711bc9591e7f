from __future__ import annotations

from pathlib import Path

import pytest

from framework.errors import ManifestError
from framework.manifest.fixture import Prompt, Workload
from framework.manifest.load import load_manifest
from tests.framework.manifest.samples import MANIFEST, make_root, write


def workload(root: Path, written: str) -> Workload:
    text = MANIFEST.format(name="sub/a", engine="{}").replace("  prompts: [hello]\n", written)
    return load_manifest(write(root, "sub/a", text=text), fixtures_root=root / "fixtures").workload


def from_file(root: Path, content: str | bytes, name: str = "p.jsonl") -> tuple[Prompt, ...]:
    path = root / "fixtures" / "sub" / "p.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return workload(root, f"  prompt_file: {name}\n").prompts


def test_the_three_forms_of_a_prompt(tmp_path: Path) -> None:
    written = """\
  prompts:
    - hello
    - {text: "", sampling: {temperature: 1, seed: 3}, arrival_step: 7}
    - {token_ids: []}
    - {random: {length: 5, seed: 0}}
    - hello
"""
    assert workload(make_root(tmp_path), written).prompts == (
        Prompt(text="hello"),
        Prompt(text="", sampling={"temperature": 1.0, "seed": 3}, arrival_step=7),
        Prompt(token_ids=()),
        Prompt(random_length=5, random_seed=0),
        Prompt(text="hello"),
    )


def test_all_at_start_is_the_default(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert workload(root, "  prompts: [x]\n") == workload(root, "  prompts: [x]\n  arrivals: all_at_start\n")


def test_a_prompt_file_holds_a_prompt_a_line(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert from_file(root, '"a\\u2028b"\n\n{"token_ids": [1]}\r\n"\u2028"') == (
        Prompt(text="a\u2028b"),
        Prompt(token_ids=(1,)),
        Prompt(text="\u2028"),
    )


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("", "holds no prompt"),
        ("\n \n", "holds no prompt"),
        ('"a"\nb\n', "p.jsonl:2: not a line of JSON"),
        ('"a" "b"', "p.jsonl:1: not a line of JSON"),
        ('{"text": "a", "text": "b"}', "a key stands twice"),
        ('{"text": NaN}', "NaN is no JSON number"),
        ('{"txt": "a"}', 'p.jsonl:1: txt: this key is not known here. Did you mean "text"?'),
        ("3", "p.jsonl:1: is 3, not a string or a map"),
        ('{"token_ids": [1.0]}', "p.jsonl:1: token_ids[0] is 1.0, not an integer. Write 1."),
        ('{"token_ids": [true]}', "token_ids[0] is true"),
        ("{}", "this has none of them"),
        ("[" * 100_000, "not a line of JSON"),
        ("1" * 5000, "not a line of JSON"),
        (b'"\xff"', "cannot be read: it is not UTF-8"),
    ],
)
def test_a_broken_prompt_file_is_refused(tmp_path: Path, content: str | bytes, part: str) -> None:
    with pytest.raises(ManifestError) as caught:
        from_file(make_root(tmp_path), content)
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("fixtures/sub/a.yaml:7: prompt_file: ")


def test_an_error_in_a_prompt_file_names_both_files_from_the_root(tmp_path: Path) -> None:
    with pytest.raises(ManifestError) as caught:
        from_file(make_root(tmp_path), '"a"\nb\n', "../sub/p.jsonl")
    assert "fixtures/sub/a.yaml:7: prompt_file: fixtures/sub/p.jsonl:2: not a line of JSON" in str(caught.value)


def test_a_prompt_file_that_links_to_itself_is_refused(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    path = root / "fixtures" / "sub" / "loop.jsonl"
    path.parent.mkdir()
    path.symlink_to("loop.jsonl")
    with pytest.raises(ManifestError, match=r"sub/a.yaml:7: prompt_file: loop.jsonl cannot be read"):
        workload(root, "  prompt_file: loop.jsonl\n")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("none.jsonl", "fixtures/sub/a.yaml:7: prompt_file: none.jsonl cannot be read"),
        ("../../../secret", "leads out of the repository"),
        ("/etc/hostname", "leads out of the repository"),
        ('"a\\0b"', "cannot be read"),
        ("..", "cannot be read"),
    ],
)
def test_a_prompt_file_that_is_not_there_or_outside_is_refused(tmp_path: Path, name: str, part: str) -> None:
    with pytest.raises(ManifestError) as caught:
        from_file(make_root(tmp_path), '"a"', name)
    assert part in str(caught.value)


def test_a_prompt_file_may_lie_beside_other_folders(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    assert from_file(root, '"a"', "../sub/p.jsonl") == (Prompt(text="a"),)
