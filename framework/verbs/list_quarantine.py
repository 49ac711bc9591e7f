"""`golden quarantine`: every fixture in quarantine, who repairs it, and how long that may still take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from framework.clock import today
from framework.errors import ExitCode, ManifestError
from framework.manifest.load import load_all
from framework.quarantine.entry import LONGEST_DAYS
from framework.quarantine.load import QUARANTINE_FILE, load_quarantine
from framework.quarantine.passes import ENOUGH_PASSES, passes_of
from framework.report.streams import log, out, print_json
from framework.report.terminal import show, shown
from framework.verbs.quarantined import problems_of_quarantine
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from typing import Any

    from framework.manifest.linted import LintProblem
    from framework.quarantine.entry import Entry
    from framework.workspace import Workspace


def run(arguments: argparse.Namespace) -> ExitCode:
    """List every entry; one that is wrong, such as one that has expired, ends with 10."""
    workspace = open_workspace(arguments.root, arguments.adapter)
    quarantine = load_quarantine(workspace.root)
    loaded = load_all(workspace.fixtures_root)
    if loaded.errors:
        raise ManifestError("\n".join(str(error) for error in loaded.errors))
    problems = problems_of_quarantine(quarantine, workspace, loaded.fixtures)
    code = ExitCode.MALFORMED if problems else ExitCode.GOOD
    entries = [_entry(workspace, entry) for entry in quarantine.entries]
    if arguments.json:
        print_json(_document(entries, problems, code))
        return code
    if entries:
        show(lambda console: console.print(_table(entries)))
    else:
        out(f"nothing is in quarantine: {workspace.root / QUARANTINE_FILE} has no entry, or is not there.")
    for problem in problems:
        log(f"golden: {problem}")
    return code


def _document(entries: list[dict[str, Any]], problems: Sequence[LintProblem], code: ExitCode) -> dict[str, Any]:
    return {
        "schema": "golden.quarantine/1",
        "verdict": "FAIL" if problems else "PASS",
        "exit_code": int(code),
        "longest_days": LONGEST_DAYS,
        "enough_passes": ENOUGH_PASSES,
        "entries": entries,
        "problems": [str(problem) for problem in problems],
    }


def _entry(workspace: Workspace, entry: Entry) -> dict[str, Any]:
    day = today()
    return {
        "fixture": entry.fixture,
        "platforms": list(entry.platforms),
        "class": [kind.value for kind in entry.classes],
        "owner": entry.owner,
        "issue": entry.issue,
        "since": entry.since.isoformat(),
        "expires": entry.expires.isoformat(),
        "days_left": entry.days_left(day),
        "holds": entry.holds_on(day),
        "consecutive_passes": {name: passes_of(workspace.state_folder, entry, name) for name in entry.platforms},
        "line": entry.line,
    }


def _table(entries: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("fixture", "platforms", "class", "owner", "expires", "days left", "passes in a row"):
        table.add_column(heading, no_wrap=heading == "fixture")
    table.add_column("issue", ratio=1)
    for entry in entries:
        table.add_row(
            shown(entry["fixture"]),
            shown(", ".join(entry["platforms"])),
            shown(", ".join(entry["class"])),
            shown(entry["owner"]),
            shown(entry["expires"]),
            shown(str(entry["days_left"]) if entry["holds"] else "does not hold"),
            shown(_passes(entry["consecutive_passes"])),
            shown(entry["issue"]),
        )
    return table


def _passes(by_platform: dict[str, int]) -> str:
    """Return the counts; those that say that an entry is needed no more say so."""
    counts = [
        f"{f'{platform} ' if len(by_platform) > 1 else ''}{passes}{': REMOVE ME' * (passes >= ENOUGH_PASSES)}"
        for platform, passes in by_platform.items()
    ]
    return ", ".join(counts)
