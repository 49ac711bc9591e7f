"""What no source of this project does: run a shell, evaluate text, unpickle, let YAML make objects.

The sources are parsed, not searched, so a comment about a pickle is no pickle. Every rule is shown to catch something.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    path
    for top in ("engine", "framework", "fixtures", "conftest.py")
    for path in ([REPOSITORY / top] if top.endswith(".py") else (REPOSITORY / top).rglob("*.py"))
)

CALLS = {
    "eval", "exec", "compile", "__import__", "input", "breakpoint",
    "os.system", "os.popen", "os.execv", "os.execve", "os.execvp", "os.execl", "os.spawnv", "os.spawnl", "os.startfile",
    "os.posix_spawn", "pty.spawn", "subprocess.getoutput", "subprocess.getstatusoutput",
    "asyncio.create_subprocess_shell",
    "torch.load", "torch.jit.load", "torch.package.PackageImporter", "torch.hub.load", "numpy.load", "np.load",
    "yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load", "yaml.unsafe_load_all",
    "tempfile.mktemp", "shutil.unpack_archive", "tarfile.open", "logging.config.listen",
}  # fmt: skip
"""Calls that no source may make, by the name they are written with."""

MODULES = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "jsonpickle"}
"""Modules that no source may import."""

METHODS = {"extractall", "unpickle", "allow_pickle"}
KEYWORDS = {"shell", "allow_pickle", "trust_remote_code", "preexec_fn"}
"""Keyword arguments that no call may be given, whatever their value."""

LOADERS = {"Loader", "CLoader", "FullLoader", "UnsafeLoader", "UnsafeConstructor", "Unpickler"}

IMPORTS_BY_NAME = {
    "framework/cli.py",  # a verb's module, named by its own source
    "framework/plugin.py",  # constants
    "framework/run/reference_engine.py",  # constants
    "framework/workspace.py",  # the adapter, which the command line or the workspace's configuration names
}
"""The only files that import a module by a name that is a value."""


def offences(source: str) -> list[str]:
    """What a source does that none may do, with its lines."""
    return [f"line {line}: {what}" for line, what in _offences(ast.parse(source))]


def _offences(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, each.name) for each in node.names if each.name.split(".")[0] in MODULES)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module.split(".")[0] in MODULES:
                yield node.lineno, module
            names = {f"{module}.{each.name}" for each in node.names}
            yield from ((node.lineno, name) for name in names & CALLS)
        elif isinstance(node, ast.Attribute) and node.attr in LOADERS | METHODS:
            yield node.lineno, node.attr
        elif isinstance(node, ast.Call):
            yield from _offences_of_call(node)


def _offences_of_call(node: ast.Call) -> Iterator[tuple[int, str]]:
    name = ast.unparse(node.func)
    if name in CALLS:
        yield node.lineno, name
    for keyword in node.keywords:
        if keyword.arg in KEYWORDS or (keyword.arg is None and name.startswith("subprocess.")):
            yield node.lineno, f"{name}({keyword.arg}=…)"
    if name.startswith("subprocess.") and node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr):
        yield node.lineno, f"{name} of a text, not a list"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(REPOSITORY).as_posix())
def test_no_source_can_be_made_to_run_what_it_reads(path: Path) -> None:
    assert offences(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import subprocess\nsubprocess.run(['ls'], shell=False)",
        "import subprocess\nsubprocess.run(f'ls {x}')",
        "import subprocess\nsubprocess.Popen(x, **options)",
        "import os\nos.system('ls')",
        "from os import system",
        "eval('1')",
        "exec(x)",
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load(x)",
        "import torch\ntorch.load(x, weights_only=True)",
        "import numpy as np\nnp.load(x)",
        "f(allow_pickle=True)",
        "f(trust_remote_code=True)",
        "import yaml\nyaml.load(x, Loader=yaml.SafeLoader)",
        "import yaml\nyaml.parse(x, Loader=yaml.UnsafeLoader)",
        "archive.extractall(x)",
        "__import__(x)",
    ],
)
def test_each_of_these_would_be_found(source: str) -> None:
    assert offences(source)


def test_modules_are_imported_by_name_in_these_places_only() -> None:
    found: dict[str, list[str]] = {}
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                found.setdefault(path.relative_to(REPOSITORY).as_posix(), []).append(ast.unparse(node.args[0]))
    assert found.keys() == IMPORTS_BY_NAME
    assert found["framework/cli.py"] == ["f'framework.verbs.{parsed.module}'"]
    assert found["framework/workspace.py"] == ["module_name"]
    for file in ("framework/plugin.py", "framework/run/reference_engine.py"):
        assert all(name.startswith("'") for name in found[file]), "a constant"


def test_the_verbs_of_the_command_line_are_named_by_its_own_source() -> None:
    """`parsed.module` comes from `set_defaults` with a constant of `cli.py`, never from an argument."""
    tree = ast.parse((REPOSITORY / "framework" / "cli.py").read_text("utf-8"))
    flags = [
        ast.unparse(argument)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("add_argument")
        for argument in [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "dest")]
    ]
    assert flags
    assert not any(flag.strip("'\"-") == "module" for flag in flags)
