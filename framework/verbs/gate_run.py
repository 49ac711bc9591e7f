"""`golden gate`: validate exactly one commit, and end with one verdict whatever happens."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from framework.errors import ExitCode, GoldenInferenceError, UsageError, internal_error
from framework.gate.gate import Gate, GateRequest
from framework.gate.plan import Share
from framework.gate.refusal import Refusal, RefusalClass
from framework.gate.verdict import Draft, left_out_lines, markdown_summary, summary_lines
from framework.golden.store import why_not_writable, write_atomically
from framework.redact import Redactor
from framework.report.streams import json_text, log, out, print_json
from framework.verbs.output_file import refuse_output
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from framework.workspace import Workspace

VERDICT_FILE = "gate-verdict.json"
PASSES_FILE = "gate-passes.json"


def run(arguments: argparse.Namespace) -> ExitCode:
    """Validate a head, write the verdict, print its summary."""
    workspace = open_workspace(arguments.root, arguments.adapter)
    refuse_outputs(arguments, workspace, "verdict")
    verdict_path = arguments.verdict or workspace.state_folder / VERDICT_FILE
    draft = Draft(str(arguments.base), str(arguments.head), arguments.vetted)
    draft.refusals.append(
        Refusal(RefusalClass.UNFINISHED, "gate", "it was ended before it had a verdict; run it again")
    )
    write_verdict(verdict_path, draft.document())
    started = time.monotonic()

    def say(line: str) -> None:
        if not arguments.json:
            log(line)

    try:
        refuse_outputs(arguments, workspace, "summary", "state")
        request = GateRequest(
            base=_given(arguments.base, "--base"),
            head=_given(arguments.head, "--head"),
            vetted=arguments.vetted,
            lane=arguments.lane,
            share=None if arguments.shard is None else Share.parse(arguments.shard),
            passes=arguments.state or workspace.state_folder / PASSES_FILE,
            reruns=arguments.rerun_mismatches,
            retries=arguments.retry_infrastructure,
        )
        Gate(workspace, request, draft, say).validate()
    except GoldenInferenceError as error:
        draft.refusals.append(Refusal(_kind_of(error), "gate", str(error), exit_code=error.exit_code))
    except Exception as error:  # noqa: BLE001 - a gate fails closed, and says so in its verdict
        draft.refusals.append(Refusal(RefusalClass.ERROR, "gate", internal_error(error)))
    del draft.refusals[0]
    draft.seconds = time.monotonic() - started
    document = draft.document()
    write_verdict(verdict_path, document)
    if arguments.summary is not None and not why_not_writable(arguments.summary, workspace.root):
        append_summary(arguments.summary, markdown_summary(document))
    show(document, as_json=arguments.json)
    return ExitCode(document["exit_code"])


def show(document: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a verdict: the document, or why each was left out and then the summary."""
    if as_json:
        print_json(dict(document))
        return
    for line in left_out_lines(document):
        out(line)
    for line in summary_lines(document):
        out(line)


def _given(value: str | None, flag: str) -> str:
    if not value:
        raise UsageError(f"{flag} is missing; say what is validated: `golden gate --base SHA --head SHA`")
    return value


def _kind_of(error: GoldenInferenceError) -> RefusalClass:
    return {
        ExitCode.USAGE: RefusalClass.NOT_THE_HEAD,
        ExitCode.MALFORMED: RefusalClass.MALFORMED,
        ExitCode.NOTHING_SELECTED: RefusalClass.NOTHING_SELECTED,
    }.get(error.exit_code, RefusalClass.ERROR)


def write_verdict(path: Path, document: Mapping[str, Any]) -> None:
    """Write the verdict where machines look for it.

    Raises:
        UsageError: it cannot be written; a verdict that nobody finds would be none.
    """
    try:
        redacted = Redactor.of(os.environ).value(dict(document))
        write_atomically(path, json_text(redacted).encode() + b"\n")
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(f"{path}: the verdict cannot be written there: {why}; give `--verdict FILE`") from None


def refuse_outputs(arguments: argparse.Namespace, workspace: Workspace, *options: str) -> None:
    """Refuse files that could not be written at the end, or that a link would carry out of the workspace.

    `options` are those that name them, without dashes.

    Raises:
        UsageError: one of them is such a file.
    """
    for option in options:
        if (path := getattr(arguments, option)) is not None:
            refuse_output(f"--{option}", path, workspace)


def append_summary(path: Path, text: str) -> None:
    """Add the summary to a file; if that fails, the verdict stands all the same."""
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(Redactor.of(os.environ).text(text))
    except OSError as error:
        log(f"golden: --summary {path}: it could not be written: {error.strerror or error}")
