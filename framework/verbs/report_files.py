"""The files that a run is asked to write beside what it prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.golden.store import write_atomically
from framework.report.junit import junit_xml
from framework.report.markdown import markdown_report
from framework.report.streams import json_text, log
from framework.verbs.output_file import refuse_output
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from framework.run.session import Report

OPTIONS = ("junit", "markdown", "report")


def refuse_unwritable(arguments: argparse.Namespace) -> None:
    """Refuse, before anything runs, files that could not be written after it.

    Raises:
        UsageError: one cannot be written.
    """
    wanted = {option: path for option in OPTIONS if (path := getattr(arguments, option)) is not None}
    if wanted:
        workspace = open_workspace(arguments.root, arguments.adapter)
        for option, path in wanted.items():
            refuse_output(f"--{option}", path, workspace)


def write_files(arguments: argparse.Namespace, report: Report, document: Mapping[str, Any]) -> None:
    """Write what was asked for; a disk that is full now does not change what the run has found."""
    for option in OPTIONS:
        path = getattr(arguments, option)
        if path is None:
            continue
        try:
            write_atomically(path, _bytes_of(option, report, document))
        except OSError as error:
            log(f"golden: --{option} {path}: it could not be written: {error.strerror or error}")


def _bytes_of(option: str, report: Report, document: Mapping[str, Any]) -> bytes:
    if option == "junit":
        return junit_xml(report)
    if option == "markdown":
        return markdown_report(report).encode("utf-8", "backslashreplace")
    return json_text(document).encode() + b"\n"
