"""Runs the command line in forked children with bounded memory and time, for tests of hostile input.

A request is a line of JSON on stdin, `{"folder", "commands", "memory_bytes", "seconds"}`; the reply is one on stdout:
for each command its exit status (negative for a signal), and what it printed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
from typing import IO, Any

# What every verb needs is imported once, before the first fork; the engine of the toy root is imported by each child.
import framework.cli
import framework.verbs.accept_candidates
import framework.verbs.check_goldens
import framework.verbs.compare_files
import framework.verbs.lint_manifests
import framework.verbs.list_quarantine
import framework.verbs.regenerate_goldens
import framework.verbs.run_fixtures


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        replies = [_run(command, request) for command in request["commands"]]
        sys.stdout.write(json.dumps(replies) + "\n")
        sys.stdout.flush()


def _run(command: list[str], request: dict[str, Any]) -> dict[str, Any]:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        child = os.fork()
        if child == 0:
            _become(command, request, out, errors)
        _, status = os.waitpid(child, 0)
        return {"status": os.waitstatus_to_exitcode(status), "stdout": _text(out), "stderr": _text(errors)}


def _become(command: list[str], request: dict[str, Any], out: IO[bytes], errors: IO[bytes]) -> None:
    """Be the command, and end with its exit code."""
    try:
        os.setsid()
        signal.alarm(request["seconds"])
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"], hard))
        os.chdir(request["folder"])
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out.fileno(), 1)
        os.dup2(errors.fileno(), 2)
        framework.cli.main(command)
    except SystemExit as ended:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 97)
    except BaseException as error:  # noqa: BLE001 - whatever gets here is what the test is looking for
        os.write(2, f"Traceback: {error!r}\n".encode())
        os._exit(98)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode("utf-8", "replace")


if __name__ == "__main__":
    main()
