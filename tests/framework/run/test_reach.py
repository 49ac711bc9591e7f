from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framework.run.reach import Reach, read_reach
from tests.framework.toy_root import REPOSITORY

SEES_FUNCTIONS = sys.version_info >= (3, 12)

MODULES = {
    "early.py": "def function(): return 1\n",
    "used.py": "def function(): return 1\n",
    "idle.py": "VALUE = [1 for _ in 'ab']\nclass Thing:\n    def method(self): return 1\n",
    "threaded.py": "def function(): return 1\n",
    "read.py": "def function(): return 1\n",
    "unused.py": "def function(): return 1\n",
    "data.txt": "data",
}
BEGIN = "import early, json, sys\nfrom framework.run.reach import ReachTracer\ntracer = ReachTracer()\n"
END = "print(json.dumps(tracer.reach().as_json()))\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def reach_of(folder: Path, script: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script + END],
        cwd=folder,
        env={"PYTHONPATH": f"{folder}:{REPOSITORY}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document


def names(document: dict[str, Any], part: str, folder: Path) -> set[str]:
    return {Path(path).name for path in document[part] if Path(path).parent == folder}


def test_modules_that_were_imported_count_and_those_of_which_nothing_ran_are_told_apart(folder: Path) -> None:
    document = reach_of(folder, "import used, idle\nused.function()\n")
    assert names(document, "imported", folder) == {"early.py", "used.py", "idle.py"}
    assert names(document, "idle", folder) == ({"idle.py"} if SEES_FUNCTIONS else set())
    assert document["is_whole"] is True


def test_a_function_counts_in_whatever_thread_it_runs(folder: Path) -> None:
    script = "import threading, threaded\nthread = threading.Thread(target=threaded.function)\nthread.start()\n"
    document = reach_of(folder, f"{script}thread.join()\n")
    assert "threaded.py" in names(document, "imported", folder)
    assert "threaded.py" not in names(document, "idle", folder)


def test_a_module_whose_source_was_read_is_not_idle(folder: Path) -> None:
    document = reach_of(folder, "import inspect, read\ninspect.getsource(read.function)\n")
    assert "read.py" not in names(document, "idle", folder)


def test_where_a_compiler_takes_functions_apart_no_module_is_idle(folder: Path) -> None:
    (folder / "numba.py").write_text("")
    assert names(reach_of(folder, "import idle, numba\n"), "idle", folder) == set()


def test_a_file_that_is_opened_counts_and_one_that_is_written_does_not(folder: Path) -> None:
    script = "open('data.txt').read()\nopen('made.txt', 'w').close()\n"
    document = reach_of(folder, script)
    assert names(document, "opened", folder) == {"data.txt"}


@pytest.mark.parametrize(
    "start", ["subprocess.run(['true'])", "os.system('true')", "os.waitpid(os.fork() or os._exit(0), 0)"]
)
def test_a_process_that_starts_another_may_have_used_more(folder: Path, start: str) -> None:
    assert reach_of(folder, f"import os, subprocess\n{start}\n")["is_whole"] is False


def test_a_reach_reads_back_as_it_was_written_and_nothing_else_is_one(tmp_path: Path) -> None:
    reach = Reach(frozenset({"/a.py", "/b.py"}), frozenset({"/c"}), is_whole=False, idle=frozenset({"/b.py"}))
    path = tmp_path / "reach.json"
    path.write_text(json.dumps(reach.as_json()))
    assert read_reach(path) == reach
    for text in ("", "{", "[]", "{}", '{"imported": 3, "opened": [], "idle": [], "is_whole": true}'):
        path.write_text(text)
        assert read_reach(path) is None
    assert read_reach(tmp_path / "nothing") is None
