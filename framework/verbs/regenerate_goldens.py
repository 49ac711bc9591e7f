"""`golden regen`: prove, plan, show, ask, write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.errors import ExitCode, GoldenError, UsageError
from framework.golden.store import golden_path, why_not_writable
from framework.regenerate.apply import StaleRegenError, apply_changes, provenance
from framework.regenerate.candidates import keep_candidates
from framework.regenerate.plan import Change, Kind, why_outside
from framework.regenerate.propose import Proposer
from framework.report.streams import log, out, print_json
from framework.run.claim import Claim
from framework.run.session import Session
from framework.run.subprocess_runner import SubprocessRunner
from framework.verbs.consent import agreed, can_be_asked, readable_reason, refuse_under_ci
from framework.verbs.lint_manifests import refuse_broken_manifests
from framework.verbs.opened import Opened, open_selection
from framework.verbs.waiting import code_of, forget_candidates

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from pathlib import Path

_GO_ON = "`golden review` shows them, `golden accept --reason …` brings them in, `golden reject` drops them"


def run(arguments: argparse.Namespace) -> ExitCode:
    """Regenerate what was selected; all of it is written, or nothing, and then what was proven is kept aside."""
    reason = readable_reason(arguments.reason, "why the goldens change")
    opened = open_selection(arguments)
    if arguments.out is None:
        refuse_under_ci("`--out DIR` writes candidates for a person to bring in")
        _refuse_goldens_elsewhere(opened)
    else:
        _refuse_unfit_folder(arguments.out, opened)
    refuse_broken_manifests(opened)
    target_root = arguments.out.absolute() if arguments.out else opened.workspace.goldens_root
    changes = _prove_and_plan(opened, arguments.platform, target_root)
    code = _code(changes)
    if not arguments.json:
        for change in changes:
            out(change.in_words())
    written: list[Path] = []
    pending: list[Path] = []
    origin = provenance(reason, opened.workspace.adapter_spec, opened.adapter.revision())
    if code is ExitCode.GOOD:
        code, written, pending = _settle(arguments, opened, changes, origin)
    elif arguments.out is None:
        # One that is refused stops all, but not what the others took minutes to prove.
        pending = keep_candidates(opened.workspace, changes, origin)
    _report(arguments, changes, written, pending, code)
    return code


def _settle(
    arguments: argparse.Namespace,
    opened: Opened,
    changes: list[Change],
    origin: Mapping[str, Any],
) -> tuple[ExitCode, list[Path], list[Path]]:
    """Write what was proven, or keep it aside where nobody agrees; return what was written and what was kept."""
    workspace = opened.workspace
    if arguments.out is not None:
        return ExitCode.GOOD, apply_changes(changes, state_folder=workspace.state_folder, origin=origin), []
    count = sum(change.kind in (Kind.NEW, Kind.CHANGED) for change in changes)
    # What took minutes to prove is kept before anybody is asked, so that no answer and no interruption loses it.
    pending = [] if arguments.yes else keep_candidates(workspace, changes, origin)
    if count and not arguments.yes and not can_be_asked(arguments):
        return ExitCode.USAGE, [], pending
    if count and not agreed(arguments, f"write {count} golden(s)?"):
        return ExitCode.GOOD, [], pending
    try:
        written = apply_changes(changes, state_folder=workspace.state_folder, origin=origin)
    except StaleRegenError:
        raise
    except GoldenError as error:
        keep_candidates(workspace, changes, origin)
        raise GoldenError(f"{error}. The {count} candidate(s) that were proven are kept: {_GO_ON}") from None
    forget_candidates(workspace, changes)
    return ExitCode.GOOD, written, []


def _refuse_goldens_elsewhere(opened: Opened) -> None:
    """Refuse goldens that a link would carry out of their folder, before any engine starts."""
    root = opened.workspace.goldens_root
    for fixture in opened.selected:
        for platform in fixture.platforms:
            if why := why_outside(golden_path(root, fixture.name, platform), root):
                raise GoldenError(why)


def _refuse_unfit_folder(folder: Path, opened: Opened) -> None:
    """Refuse a folder for candidates that is none, or that leads, itself or further down, to the goldens."""
    goldens_root = opened.workspace.goldens_root
    for fixture in opened.selected:
        for platform in fixture.platforms:
            path = golden_path(folder.absolute(), fixture.name, platform)
            real = path.parent.resolve()
            if goldens_root.resolve() in (folder.resolve(), *folder.resolve().parents, real, *real.parents):
                raise UsageError(f"--out {folder}: candidates do not go into {goldens_root}; choose another folder")
            if why := why_not_writable(path, opened.workspace.root):
                raise UsageError(f"--out {folder}: {path} cannot be written: {why}; choose another folder")


def _prove_and_plan(opened: Opened, platform: str | None, target_root: Path) -> list[Change]:
    runner = SubprocessRunner(opened.workspace)
    session = Session(opened.workspace, opened.adapter, runner, opened.fixtures, platform)
    proposer = Proposer(session, target_root, Claim(log))
    changes = []
    try:
        for fixture in opened.selected:
            if why := session.why_skipped(fixture):
                log(f"skipped   {fixture.name}: {why}")
                continue
            change = proposer.change(fixture)
            log(f"{change.kind:<9} {fixture.name}")
            changes.append(change)
    finally:
        proposer.close()
    return changes


def _code(changes: list[Change]) -> ExitCode:
    return code_of(changes) if changes else ExitCode.NOTHING_SELECTED


def _report(
    arguments: argparse.Namespace,
    changes: list[Change],
    written: list[Path],
    pending: list[Path],
    code: ExitCode,
) -> None:
    if pending:
        log(f"golden: {len(pending)} candidate(s) that were proven are kept: {_GO_ON}.")
    if code is ExitCode.USAGE:
        log("golden: nobody is there to be asked, so no golden was written; `--yes` would write.")
    if arguments.json:
        document = {
            "schema": "golden.regen/1",
            "verdict": "PASS" if code is ExitCode.GOOD else "FAIL",
            "exit_code": int(code),
            "fixtures": [change.as_json() for change in changes],
            "written": [str(path) for path in written],
            "pending": [str(path) for path in pending],
        }
        print_json(document)
        return
    for path in written:
        out(f"wrote {path}")
    refused = sum(change.kind is Kind.REFUSED for change in changes)
    if refused:
        out(f"{refused} of {len(changes)} refused, so no golden was written. Fix them, or select the others by name.")
    elif written and arguments.out is not None:
        out(f"Next: `golden accept {arguments.out} --reason …`, in a checkout of the same code, brings them in.")
    elif written:
        out("Next: review the difference in version control, and commit it with its reason.")
    else:
        out("nothing was written.")
