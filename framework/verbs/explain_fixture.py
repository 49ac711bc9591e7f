"""`golden explain`: what one fixture pins and inherits, where its golden comes from, and its last verdict."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from framework.errors import ExitCode
from framework.golden.store import Golden
from framework.report.streams import log, out, print_json
from framework.run.history import last_verdict
from framework.run.in_process import InProcessRunner
from framework.run.session import Session
from framework.verbs.opened import Opened, open_selection

if TYPE_CHECKING:
    import argparse

    from framework.manifest.fixture import Fixture


def run(arguments: argparse.Namespace) -> ExitCode:
    """Explain the fixtures that the name or glob selects."""
    opened = open_selection(arguments)
    session = Session(
        opened.workspace,
        opened.adapter,
        InProcessRunner(opened.adapter),
        opened.fixtures,
        arguments.platform,
    )
    entries = [_entry(opened, session, fixture) for fixture in opened.selected]
    if arguments.json:
        print_json({"schema": "golden.explain/1", "fixtures": entries})
    else:
        for entry in entries:
            out(_in_words(entry))
            if entry["golden_unusable"]:
                log(f"golden: {entry['fixture']} has no golden that can be used here")
    return ExitCode.GOLDEN if any(entry["golden_unusable"] for entry in entries) else ExitCode.GOOD


def _entry(opened: Opened, session: Session, fixture: Fixture) -> dict[str, Any]:
    prepared = session.prepare(fixture)
    golden = prepared.document if isinstance(prepared, Golden) else None
    problems = [] if isinstance(prepared, Golden) else [finding.message for finding in prepared.findings]
    recorded = golden["settings"] if golden else {}
    settings = {
        name: {
            "value": fixture.engine.get(name, description.default),
            "source": "pinned" if name in fixture.engine else "default",
            "golden": recorded.get(name, {}).get("value") if golden else None,
        }
        for name, description in session.descriptions().items()
    }
    return {
        "fixture": fixture.name,
        "summary": fixture.summary.strip(),
        "manifest": str(fixture.path),
        "settings": settings,
        "asserted": {name: str(rule) for name, rule in fixture.rules.asserted.items()},
        "informed": sorted(fixture.rules.informed),
        "ignored": dict(fixture.rules.ignored),
        "witnesses": [str(witness) for witness in fixture.witnesses],
        "relations": [f"{relation.kind} with {relation.other}" for relation in fixture.relations],
        "golden": str(prepared.path) if isinstance(prepared, Golden) else None,
        "golden_unusable": not isinstance(prepared, Golden) and prepared.exit_code is ExitCode.GOLDEN,
        "golden_problems": problems or ([prepared.reason] if not isinstance(prepared, Golden) else []),
        "provenance": golden["provenance"] if golden else None,
        "last_verdict": last_verdict(opened.workspace.state_folder, fixture.name),
    }


def _in_words(entry: dict[str, Any]) -> str:
    lines = [f"{entry['fixture']}: {entry['summary']}", f"  manifest {entry['manifest']}", "  settings:"]
    lines.extend(
        f"    {name} = {json.dumps(setting['value'])} ({setting['source']}){_was(setting, entry['golden'])}"
        for name, setting in entry["settings"].items()
    )
    lines.append("  asserted:")
    lines.extend(f"    {name}: {rule}" for name, rule in entry["asserted"].items())
    lines.extend(f"  ignored: {name} ({reason})" for name, reason in entry["ignored"].items())
    lines.extend(f"  witness: {witness}" for witness in entry["witnesses"])
    lines.extend(f"  relation: {relation}" for relation in entry["relations"])
    lines.append(f"  golden: {entry['golden'] or 'none that can be used'}")
    lines.extend(f"    {problem}" for problem in entry["golden_problems"])
    lines.extend(f"    {name}: {json.dumps(value)}" for name, value in sorted((entry["provenance"] or {}).items()))
    last = entry["last_verdict"]
    lines.append(f"  last verdict: {last['verdict'] if last else 'none; `golden run` gives one'}")
    lines.extend(f"    {each['class']} {each['path']}: {each['message']}" for each in (last or {}).get("findings", []))
    return "\n".join(lines)


def _was(setting: dict[str, Any], golden: str | None) -> str:
    """Say where an inherited value is not the one the golden was recorded with."""
    if golden is None or json.dumps(setting["golden"]) == json.dumps(setting["value"]):
        return ""
    return f"; the golden was recorded with {json.dumps(setting['golden'])}"
