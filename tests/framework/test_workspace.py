from __future__ import annotations

from pathlib import Path

import pytest

from framework.errors import EngineError, UsageError
from framework.workspace import DEFAULT_ADAPTER, Workspace, load_adapter, open_workspace
from tests.framework.toy_root import ADAPTER, make_toy_root


def test_the_root_is_the_nearest_parent_with_both_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = make_toy_root(tmp_path / "root")
    (root.path / "deep" / "fixtures").mkdir(parents=True)
    monkeypatch.chdir(root.path / "deep" / "fixtures")
    assert open_workspace(None, None) == Workspace(root.path, ADAPTER, ("TOY_*",))


def test_a_given_adapter_beats_the_configured_one_beats_the_default(tmp_path: Path) -> None:
    root = make_toy_root(tmp_path / "root").path
    assert open_workspace(root, "other:Engine").adapter_spec == "other:Engine"
    (root / "pyproject.toml").write_text("[tool.golden]\n")
    assert open_workspace(root, None).adapter_spec == DEFAULT_ADAPTER
    (root / "pyproject.toml").unlink()
    assert open_workspace(root, None).adapter_spec == DEFAULT_ADAPTER


@pytest.mark.parametrize("text", ["[tool", "tool = 1", "[tool]\ngolden = 'x'\n", "[tool.golden]\nadapter = 3\n"])
def test_a_broken_configuration_is_named(tmp_path: Path, text: str) -> None:
    root = make_toy_root(tmp_path / "root").path
    (root / "pyproject.toml").write_text(text)
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        open_workspace(root, None)


def test_without_a_root_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="--root DIR"):
        open_workspace(None, None)
    with pytest.raises(UsageError, match="has not both"):
        open_workspace(tmp_path, None)


@pytest.mark.parametrize(
    "spec",
    [
        "nonsense",
        ":Engine",
        "a:",
        "..x:Y",
        "no_such_module:Engine",
        "json.no_such_module:Engine",
        "framework.workspace:NoSuchClass",
        "json:loads",
        "os:sep",
        "collections:OrderedDict",
    ],
)
def test_an_adapter_that_is_not_there_is_named(tmp_path: Path, spec: str) -> None:
    with pytest.raises(UsageError, match=f"adapter '{spec}'"):
        load_adapter(Workspace(tmp_path, spec))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def x(:", "SyntaxError: invalid syntax .*broken_SyntaxError.py:1"),
        ("\nNOPE", "NameError: .*broken_NameError.py:2"),
        ("import sys; sys.exit(1)", "SystemExit: 1 .*broken_SystemExit.py:1"),
        ("import nowhere_to_be_found", "ModuleNotFoundError: .*broken_ModuleNotFoundError.py:1"),
        ("1/0", "ZeroDivisionError: .*broken_ZeroDivisionError.py:1"),
    ],
)
def test_an_engine_that_cannot_be_imported_is_an_engine_error_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"broken_{words.partition(':')[0]}"
    (tmp_path / f"{name}.py").write_text(text)
    with pytest.raises(EngineError, match=words):
        load_adapter(Workspace(tmp_path, f"{name}:Engine"))


def test_the_default_adapter_loads(tmp_path: Path) -> None:
    assert load_adapter(Workspace(tmp_path, DEFAULT_ADAPTER)).platforms()[-1] == "cpu"
