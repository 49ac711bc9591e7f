"""`golden regen`: prove, plan, show, ask, write."""

from __future__ import annotations

import os
import sys
import unicodedata
from typing import TYPE_CHECKING

from framework.errors import ExitCode, UsageError, worst_exit_code
from framework.golden.store import golden_path, why_not_writable
from framework.regenerate.apply import apply_changes, provenance
from framework.regenerate.plan import Change, Kind, plan_change
from framework.regenerate.prove import Prover
from framework.report.streams import log, out, print_json
from framework.run.session import Session
from framework.run.subprocess_runner import SubprocessRunner
from framework.verbs.lint_manifests import refuse_broken_manifests
from framework.verbs.opened import Opened, open_selection

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

_NO = ("", "0", "false", "no")
_LOOK_EMPTY = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Fillers that Unicode counts as letters or symbols, and that nobody can see."""


def run(arguments: argparse.Namespace) -> ExitCode:
    """Regenerate what was selected; all of it is written, or nothing."""
    reason = arguments.reason.strip()
    if not _is_visible(reason):
        raise UsageError("--reason is empty; say why the goldens change, for whoever reads them later")
    opened = open_selection(arguments)
    _refuse_to_write_unseen(arguments, opened)
    refuse_broken_manifests(opened)
    target_root = arguments.out.absolute() if arguments.out else opened.workspace.goldens_root
    changes = _prove_and_plan(opened, arguments.platform, target_root)
    code = _code(changes)
    if not arguments.json:
        for change in changes:
            out(change.in_words())
    written = []
    if code is ExitCode.GOOD and _confirmed(changes, arguments):
        written = apply_changes(
            changes,
            state_folder=opened.workspace.state_folder,
            origin=provenance(reason, opened.workspace.adapter_spec, opened.adapter.revision()),
        )
    _report(arguments, changes, written, code)
    return code


def _is_visible(text: str) -> bool:
    """Say whether a text has a character that a reader can see: a letter, a number, punctuation or a symbol."""
    return any(unicodedata.category(char)[0] in "LNPS" and char not in _LOOK_EMPTY for char in text)


def _refuse_to_write_unseen(arguments: argparse.Namespace, opened: Opened) -> None:
    """Refuse, before any engine starts, what would end in goldens that nobody has looked at."""
    if arguments.out is not None:
        _refuse_unfit_folder(arguments.out, opened)
        return
    if os.environ.get("CI", "").strip().lower() not in _NO:
        raise UsageError("CI is set, so no golden is written; `--out DIR` writes candidates for a person to bring in")
    if not arguments.yes and (arguments.json or not sys.stdin.isatty()):
        raise UsageError("nobody is there to be asked; give `--yes` to write without asking, or `--out DIR`")


def _refuse_unfit_folder(folder: Path, opened: Opened) -> None:
    """Refuse a folder for candidates that is none, or that leads, itself or further down, to the goldens."""
    goldens_root = opened.workspace.goldens_root
    for fixture in opened.selected:
        for platform in fixture.platforms:
            path = golden_path(folder.absolute(), fixture.name, platform)
            real = path.parent.resolve()
            if goldens_root.resolve() in (folder.resolve(), *folder.resolve().parents, real, *real.parents):
                raise UsageError(f"--out {folder}: candidates do not go into {goldens_root}; choose another folder")
            if why := why_not_writable(path):
                raise UsageError(f"--out {folder}: {path} cannot be written: {why}; choose another folder")


def _prove_and_plan(opened: Opened, platform: str | None, target_root: Path) -> list[Change]:
    prover = Prover(
        opened.workspace,
        opened.adapter,
        opened.fixtures,
        lambda environment: SubprocessRunner(opened.workspace, environment),
    )
    session = Session(opened.workspace, opened.adapter, prover.make_runner({}), opened.fixtures, platform)
    changes = []
    try:
        for fixture in opened.selected:
            if why := session.why_skipped(fixture):
                log(f"skipped   {fixture.name}: {why}")
                continue
            chosen = session.platform_of(fixture)
            assert chosen is not None, "without a platform it is skipped"
            proof = prover.prove(fixture, chosen)
            change = plan_change(proof, opened.workspace.goldens_root, target_root, session.hashes(fixture))
            log(f"{change.kind:<9} {fixture.name}")
            changes.append(change)
    finally:
        prover.close()
    return changes


def _code(changes: list[Change]) -> ExitCode:
    if not changes:
        return ExitCode.NOTHING_SELECTED
    return worst_exit_code([problem.exit_code for change in changes for problem in change.proof.problems])


def _confirmed(changes: list[Change], arguments: argparse.Namespace) -> bool:
    count = sum(change.kind in (Kind.NEW, Kind.CHANGED) for change in changes)
    if count == 0:
        return False
    if arguments.yes or arguments.out is not None:
        return True
    sys.stderr.write(f"write {count} golden(s)? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _report(arguments: argparse.Namespace, changes: list[Change], written: list[Path], code: ExitCode) -> None:
    if arguments.json:
        document = {
            "schema": "golden.regen/1",
            "verdict": "PASS" if code is ExitCode.GOOD else "FAIL",
            "exit_code": int(code),
            "fixtures": [change.as_json() for change in changes],
            "written": [str(path) for path in written],
        }
        print_json(document)
        return
    for path in written:
        out(f"wrote {path}")
    refused = sum(change.kind is Kind.REFUSED for change in changes)
    if refused:
        out(f"{refused} of {len(changes)} refused, so nothing was written. Fix them, or select the others by name.")
    elif not written:
        out("nothing was written.")
    else:
        out("Next: review the difference in version control, and commit it with its reason.")
