"""The controller of a pytest run: it hears what became of each fixture, wherever it ran, and is the only one to write.

Candidates are written as soon as they arrive, since it took minutes to prove them; the report and the last verdicts at
the end.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from framework.errors import ExitCode, GoldenInferenceError, UsageError
from framework.golden.store import why_not_writable, write_atomically
from framework.judge import Verdict
from framework.pytest_proposal import read_proposal, values_of
from framework.redact import redacted
from framework.regenerate.candidates import Proposal, keep_proposals
from framework.report.neutral import neutral
from framework.report.pytest_summary import (
    Heard,
    Unjudged,
    contradictions,
    count_line,
    one_for_each_fixture,
    read_outcome,
    run_report,
    seen,
    summary_lines,
)
from framework.report.streams import json_text
from framework.run.history import remember
from framework.run.required import unmet
from framework.verbs.consent import refuse_under_ci
from framework.workspace import is_root, open_workspace

_MOST_LINES = 20
_LINE_WIDTH = 1000


def refuse_options(config: pytest.Config) -> None:
    """Refuse, before anything runs, options that could not be fulfilled after it.

    Raises:
        pytest.UsageError: a report or a candidate could not be written there, or CI is set and no folder was named.
    """
    report, folder, mode = (config.getoption(name) for name in ("--golden-report", "--golden-out", "--golden"))
    if report is not None and (
        why := why_not_writable(_given(config, report), config.rootpath) if report else "it is empty"
    ):
        raise pytest.UsageError(f"--golden-report {report}: it cannot be written: {why}; choose another file")
    if folder is not None:
        if mode != "candidates":
            raise pytest.UsageError("--golden-out is for candidates; give --golden=candidates too")
        if why := _why_unfit(_given(config, folder), config.rootpath) if folder else "it is empty":
            raise pytest.UsageError(f"--golden-out {folder}: {why}; choose another folder")
    elif mode == "candidates":
        try:
            refuse_under_ci("`--golden-out DIR` keeps candidates in a folder that you name, for a person to bring in")
        except UsageError as error:
            raise pytest.UsageError(f"--golden=candidates: {error}") from None


def _given(config: pytest.Config, path: str) -> Path:
    """Return a path as whoever called pytest meant it, wherever tests have gone since."""
    return config.invocation_params.dir / path


def _why_unfit(folder: Path, root: Path) -> str:
    real = folder.resolve()
    for above in (real, *real.parents):
        if above.name == "goldens" and is_root(above.parent):
            return f"candidates do not go into {above}"
    why = why_not_writable(folder / "x", root)
    return f"it cannot be written to: {why}" if why else ""


@dataclass(slots=True)
class Controller:
    """What was heard so far."""

    config: pytest.Config
    _outcomes: list[Heard] = field(default_factory=list)
    _unjudged: dict[tuple[str, str], Unjudged] = field(default_factory=dict)
    _proposed: dict[tuple[str, str, str], Any] = field(default_factory=dict)
    _said: dict[tuple[str, str, str], str] = field(default_factory=dict)
    _kept: int = 0
    _could_not: list[str] = field(default_factory=list)

    def hear(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Take in a report of a fixture or a manifest."""
        outcome, proposal = getattr(report, "golden_outcome", None), getattr(report, "golden_proposal", None)
        is_call = getattr(report, "when", "call") == "call"
        if outcome is not None and is_call:
            self._outcomes.append(read_outcome(outcome, getattr(report, "worker_id", "")))
        elif report.failed:
            self._hear_failure(report)
        if proposal is not None and is_call:
            self._propose(json.loads(proposal))

    def _hear_failure(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Take in what failed without a verdict: in words of ours, or because its process died or a plugin ended it."""
        if (text := getattr(report, "golden_error", None)) is not None:
            error = json.loads(text)
            message, code = error["message"], ExitCode(error["exit_code"])
        else:
            last = (report.longreprtext.strip() or "it failed").splitlines()[-1]
            message, code = f"{report.nodeid}: {last}", ExitCode.ENGINE
        self._unjudged[report.nodeid, message] = Unjudged(report.nodeid, message, code)

    def _propose(self, text: dict[str, Any]) -> None:
        key = (text["root"], text["fixture"], text["platform"])
        proposal = read_proposal(text)
        classes = ", ".join(f"{count} {name}" for name, count in sorted(text.get("by_class", {}).items()))
        head = f"candidate   {text['fixture']} [{text['platform']}]: {text['change']}" + f" ({classes})" * bool(classes)
        if proposal is None:
            if key not in self._proposed:
                self._said[key] = f"{head}: {'; '.join(text['problems'])}"
        elif key not in self._proposed:
            self._proposed[key] = values_of(proposal)
            self._said[key] = f"{head}: {self._keep(text, proposal)}"
        elif self._proposed[key] != values_of(proposal):
            self._said[key] = f"{head}: processes proved different values; what was kept is not to be believed"

    def _keep(self, text: dict[str, Any], proposal: Proposal) -> str:
        """Write a proposal where candidates wait; return where, or why not."""
        folder = self.config.getoption("--golden-out")
        try:
            workspace = open_workspace(Path(text["root"]), text["adapter"])
            kept = keep_proposals(workspace, [proposal], _given(self.config, folder) if folder else None)
        except GoldenInferenceError as error:
            return f"not kept: {error}"
        self._kept += len(kept)
        return f"kept as {kept[0]}" if kept else "none, the golden in force was proven to stand"

    def all_skipped(self) -> bool:
        """Say whether fixtures were heard of and every one of them was skipped."""
        return bool(self._outcomes) and all(heard.verdict is Verdict.SKIP for heard in self._outcomes)

    def unmet(self) -> str:
        """Return why the run does not count where a device is required, or an empty string."""
        return unmet(self.config.getoption("--golden-require-device"), map(seen, one_for_each_fixture(self._outcomes)))

    def finish(self) -> None:
        """Write the report that was asked for, and the last verdict on each fixture."""
        outcomes = one_for_each_fixture(self._outcomes)
        for root in sorted({heard.root for heard in outcomes}):
            remember(Path(root) / ".golden", [heard.entry for heard in outcomes if heard.root == root])
        target = self.config.getoption("--golden-report")
        if target is not None:
            document = run_report(outcomes, self._all_unjudged(), self.unmet())
            try:
                write_atomically(_given(self.config, target), json_text(document).encode() + b"\n")
            except OSError as error:
                self._could_not.append(f"--golden-report {target}: it could not be written: {error.strerror or error}")

    def lines(self) -> list[str]:
        """Return the lines of the terminal section."""
        outcomes = one_for_each_fixture(self._outcomes)
        said = [self._said[key] for key in sorted(self._said)]
        lines = [
            *([f"NOT ENOUGH: {why}"] if (why := self.unmet()) else []),
            *summary_lines(outcomes, self._all_unjudged()),
            *_bounded(contradictions(self._outcomes)),
            *_bounded(said),
            *self._next_steps(),
            *self._could_not,
            count_line(outcomes),
        ]
        return [_cut(neutral(redacted(line))) for line in lines]

    def _all_unjudged(self) -> list[Unjudged]:
        return [self._unjudged[key] for key in sorted(self._unjudged)]

    def _next_steps(self) -> list[str]:
        if not self._kept:
            return []
        folder = f" {out}" if (out := self.config.getoption("--golden-out")) else ""
        shows = f"`golden review{folder}` shows the {self._kept} candidate(s)"
        return [f"Next: {shows}, `golden accept{folder} --reason …` brings them in."]


def _bounded(lines: list[str]) -> list[str]:
    hidden = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"and {hidden} more"] if hidden > 0 else lines


def _cut(line: str) -> str:
    flat = line.replace(os.linesep, " ")
    return flat if len(flat) <= _LINE_WIDTH else f"{flat[:_LINE_WIDTH]}…"
