"""`golden which`: the golden a fixture would be judged with on this machine, and why that one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode, worst_exit_code
from framework.golden.store import Golden, golden_path
from framework.judge import Outcome, Verdict
from framework.report.streams import out, print_json
from framework.verbs.offline_session import open_offline

if TYPE_CHECKING:
    import argparse
    from typing import Any

    from framework.manifest.fixture import Fixture
    from framework.run.session import Session


def run(arguments: argparse.Namespace) -> ExitCode:
    """Print path and reason for each fixture."""
    opened, session = open_offline(arguments)
    entries = [_entry(session, fixture, arguments.platform) for fixture in opened.selected]
    if arguments.json:
        print_json({"schema": "golden.which/1", "fixtures": entries})
    else:
        for entry in entries:
            out(f"{entry['fixture']}: {entry['golden'] or 'none'}\n  {entry['why']}")
    return worst_exit_code([ExitCode(entry["exit_code"]) for entry in entries])


def _entry(session: Session, fixture: Fixture, asked: str | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"fixture": fixture.name, "platform": session.platform_of(fixture), "golden": None}
    prepared = session.prepare(fixture)
    if isinstance(prepared, Outcome) and prepared.verdict is Verdict.SKIP:
        return entry | {"why": prepared.reason, "exit_code": int(prepared.exit_code)}
    path = golden_path(session.workspace.goldens_root, fixture.name, entry["platform"])
    chosen = "it was asked for" if asked else "it is this machine's best of those the fixture names"
    why = f"platform {entry['platform']}: {chosen} ({', '.join(fixture.platforms)})"
    if isinstance(prepared, Golden):
        code = ExitCode.GOOD
    else:
        code = prepared.exit_code
        why = f"{why}; not usable: {'; '.join(finding.message for finding in prepared.findings)}"
    return entry | {"golden": str(path), "why": why, "exit_code": int(code)}
