"""The plugin as others use it: a wheel of this project, installed elsewhere, in a repository that has no part of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.framework.toy_root import REPOSITORY, ToyRoot, make_toy_root

pytestmark = pytest.mark.skipif(find_spec("setuptools") is None, reason="a wheel is built with setuptools")


def pip(*arguments: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("engine", "framework"):
        shutil.copytree(REPOSITORY / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, source)
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), ".", folder=source)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed") / "target"
    pip("install", "--no-deps", "--no-index", "--target", str(target), str(wheel), folder=target.parent)
    return target


def elsewhere(root: ToyRoot, installed: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command that finds the installed files, and nothing of this checkout."""
    unwanted = ("CI", "PYTEST_", "PYTHONPATH")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return subprocess.run(
        [sys.executable, "-P", "-m", *command],
        cwd=root.path,
        env={**inherited, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def test_the_wheel_has_every_file_that_is_read_at_run_time(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = [path for top in ("engine", "framework") for path in (REPOSITORY / top).rglob("*") if path.is_file()]
    wanted = {path.relative_to(REPOSITORY).as_posix() for path in sources if "__pycache__" not in path.parts}
    assert wanted - names == set()
    assert any(name.endswith("manifest.schema.json") for name in names)
    assert not any(name.startswith(("tests/", "fixtures/", "goldens/")) for name in names)


def test_another_repository_checks_its_engine_and_finds_its_regression(installed: Path, tmp_path: Path) -> None:
    root = make_toy_root(tmp_path / "theirs")
    (root.path / "toy_adapter.py").write_text((root.path / "toy_adapter.py").read_text())
    root.write("default")
    root.write("deep/legacy", engine="async_sched_mode: legacy")
    (root.path / "test_own.py").write_text(
        "import framework\n"
        f"def test_it_is_the_installed_one(): assert framework.__file__.startswith({str(installed)!r})\n"
    )
    recorded = elsewhere(root, installed, "framework", "regen", "--reason", "first recording", "--yes")
    assert recorded.returncode == 0, recorded.stdout + recorded.stderr
    good = elsewhere(root, installed, "pytest", "--strict-markers", "-n", "2", "-p", "no:cacheprovider")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "3 passed" in good.stdout
    assert "2 fixtures, " in good.stdout
    root.set_default_mode("legacy")
    bad = elsewhere(root, installed, "pytest", "fixtures", "-p", "no:cacheprovider")
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "DEFAULT CHANGED: `async_sched_mode` default async → legacy" in bad.stdout
    assert "FAIL        default [cpu]: 1 SETTINGS_DRIFT, 2 COUNTER" in bad.stdout
