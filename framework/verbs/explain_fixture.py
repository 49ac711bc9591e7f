"""`golden explain`: what one fixture pins, inherits and judges, where its golden comes from, and its last verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from framework.errors import ExitCode, GoldenError
from framework.explain.fixture import explain_fixture
from framework.explain.fixture_text import fixture_lines
from framework.golden.store import Golden, read_golden_of
from framework.report.streams import log, out, print_json
from framework.run.history import last_verdict
from framework.verbs.offline_session import open_offline

if TYPE_CHECKING:
    import argparse

    from framework.judge import Outcome
    from framework.manifest.fixture import Fixture
    from framework.run.session import Session


def run(arguments: argparse.Namespace) -> ExitCode:
    """Explain the fixtures that the name or glob selects."""
    opened, session = open_offline(arguments)
    entries = [_entry(session, fixture) for fixture in opened.selected]
    if arguments.json:
        print_json({"schema": "golden.explain/1", "fixtures": entries})
    else:
        for entry in entries:
            out("\n".join(fixture_lines(entry)))
            if entry["golden_unusable"]:
                log(f"golden: {entry['fixture']} has no golden that can be used here")
    return ExitCode.GOLDEN if any(entry["golden_unusable"] for entry in entries) else ExitCode.GOOD


def _entry(session: Session, fixture: Fixture) -> dict[str, Any]:
    prepared = session.prepare(fixture)
    golden = prepared if isinstance(prepared, Golden) else _on_disk(session, fixture)
    return {
        **explain_fixture(fixture, golden.document if golden else None, session.descriptions()),
        "golden": str(prepared.path) if isinstance(prepared, Golden) else None,
        "golden_unusable": not isinstance(prepared, Golden) and prepared.exit_code is ExitCode.GOLDEN,
        "golden_problems": [] if isinstance(prepared, Golden) else _problems(prepared),
        "last_verdict": last_verdict(session.workspace.state_folder, fixture.name),
    }


def _problems(outcome: Outcome) -> list[str]:
    return [finding.message for finding in outcome.findings] or [outcome.reason]


def _on_disk(session: Session, fixture: Fixture) -> Golden | None:
    """Return a golden that cannot be used, such as a stale one, if it can be read all the same."""
    platform = session.platform_of(fixture)
    if platform is None:
        return None
    try:
        return read_golden_of(session.workspace.goldens_root, fixture.name, platform)
    except GoldenError:
        return None
