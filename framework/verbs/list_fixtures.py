"""`golden list`: every fixture, and what it proves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from framework.errors import ExitCode
from framework.golden.store import golden_path
from framework.report.streams import print_json
from framework.report.terminal import show, shown
from framework.verbs.opened import Opened, open_selection

if TYPE_CHECKING:
    import argparse
    from typing import Any

    from framework.manifest.fixture import Fixture


def run(arguments: argparse.Namespace) -> ExitCode:
    """List what was selected."""
    opened = open_selection(arguments)
    chosen = [each for each in opened.selected if arguments.platform in (None, *each.platforms)]
    entries = [_entry(opened, fixture) for fixture in chosen]
    if arguments.json:
        print_json({"schema": "golden.list/1", "fixtures": entries})
    else:
        show(lambda console: console.print(_table(entries)))
    return ExitCode.GOOD if chosen else ExitCode.NOTHING_SELECTED


def _entry(opened: Opened, fixture: Fixture) -> dict[str, Any]:
    goldens = opened.workspace.goldens_root
    recorded = [name for name in fixture.platforms if golden_path(goldens, fixture.name, name).is_file()]
    return {
        "fixture": fixture.name,
        "summary": fixture.summary.strip(),
        "tags": list(fixture.tags),
        "model": fixture.model,
        "skipped": opened.workspace.why_not_fetched(fixture) or None,
        "platforms": list(fixture.platforms),
        "goldens": recorded,
        "pinned": dict(fixture.engine),
        "owner": fixture.owner,
    }


def _table(entries: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("fixture", "tags", "platforms", "golden"):
        table.add_column(heading, no_wrap=True)
    table.add_column("what it proves", ratio=1)
    for entry in entries:
        table.add_row(
            shown(entry["fixture"]),
            shown(", ".join(entry["tags"])),
            shown(", ".join(entry["platforms"])),
            shown(", ".join(entry["goldens"]) or "none"),
            shown(f"{entry['summary']} [skipped: {entry['skipped']}]" if entry["skipped"] else entry["summary"]),
        )
    return table
