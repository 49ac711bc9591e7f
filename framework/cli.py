"""The command `golden`: arguments in, a verb's module called, an exit code out.

Verbs are imported by name when they are called, so that one that compares two files does not wait for what another
needs in order to run an engine.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from framework.errors import ExitCode, GoldenInferenceError, UsageError, internal_error
from framework.report.streams import flush_out, log, prepare_streams, print_json
from framework.report.timing import process_began

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

_INTERRUPTED = 130
_ENDED = 143
_MOST_REPEATS = 100
_MOST_JOBS = 256
_AUTO = "auto"
_HELP_EPILOG = """exit codes: 0 good, 1 regression, 2 usage, 10 manifest, lint or malformed rules, 11 engine crash,
time limit, a model that could not be fetched or a fault of golden itself, 12 golden missing, stale, unreadable or its
seal broken, 13 nothing selected or all skipped"""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like all others, so that `--json` holds for them too."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `{self.prog} --help` shows what there is")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    began = process_began()
    given = list(sys.argv[1:] if arguments is None else arguments)
    prepare_streams()
    signal.signal(signal.SIGTERM, _end)
    try:
        code = int(run(given, began=began))
    except _EndedError:
        code = _failed(given, "ended by SIGTERM", _ENDED)
    except KeyboardInterrupt:
        code = _failed(given, "interrupted", _INTERRUPTED)
    flush_out()
    sys.exit(code)


class _EndedError(KeyboardInterrupt):
    """The process was asked to end: whatever it holds is let go of, as when a person interrupts it."""


def _end(number: int, frame: FrameType | None) -> NoReturn:
    """Begin to end; asked again meanwhile, the process ends as it would have."""
    del frame
    signal.signal(number, signal.SIG_DFL)
    raise _EndedError


def run(arguments: Sequence[str], *, began: float | None = None) -> ExitCode:
    """Run one verb and return its exit code; what a user did wrong is printed, never raised.

    A fault of the command itself is one line too, and never ends like a regression. `GOLDEN_DEBUG=1` adds its
    traceback. `began` is when the command did, on the clock of `time.monotonic`; now, unless it is given.
    """
    known = argparse.Namespace(began=time.monotonic() if began is None else began)
    try:
        try:
            parsed = _parser().parse_args(arguments, known)
        except SystemExit:  # argparse has printed what `--help` asked for
            return ExitCode.GOOD
        code = importlib.import_module(f"framework.verbs.{parsed.module}").run(parsed)
    except GoldenInferenceError as error:
        return ExitCode(_failed(arguments, str(error), error.exit_code))
    except Exception as error:  # noqa: BLE001 - whatever it is, a user gets one line, and a machine one document
        if os.environ.get("GOLDEN_DEBUG") == "1":
            log("".join(traceback.format_exception(error)).rstrip())
        return ExitCode(_failed(arguments, internal_error(error), ExitCode.ENGINE))
    assert isinstance(code, ExitCode), "a verb returns its exit code"
    return code


def _failed(arguments: Sequence[str], message: str, code: int) -> int:
    if "--json" in arguments:
        print_json({"verdict": "ERROR", "exit_code": int(code), "error": message})
    log(f"golden: {message}")
    return int(code)


def _path(text: str) -> Path:
    """Return a path that was given; an empty one would silently mean the current folder."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is no path")
    return Path(text)


def _count(text: str) -> int:
    """Return how often something is done again, at most `_MOST_REPEATS` times."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_REPEATS)) and int(text) <= _MOST_REPEATS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 to {_MOST_REPEATS}")
    return int(text)


def _jobs(text: str) -> int | None:
    """Return how many engine processes there are; None stands for `auto`."""
    if text == _AUTO:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MOST_JOBS)) and 1 <= int(text) <= _MOST_JOBS):
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {_MOST_JOBS}, nor {_AUTO!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="golden",
        description="Judge an inference engine against recorded golden values.",
        epilog=_HELP_EPILOG,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--root",
        type=_path,
        help="the folder with fixtures/ and goldens/ (default: the nearest parent that has both)",
    )
    parser.add_argument("--adapter", metavar="MODULE:CLASS", help="the engine to judge (default: the one shipped)")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, parser_class=_Parser)

    run_verb = _verb(verbs, "run", "run_fixtures", "run fixtures and judge them against their goldens")
    _selection(run_verb)
    run_verb.add_argument(
        "-j",
        "--jobs",
        type=_jobs,
        default=1,
        metavar="N",
        help="engine processes beside each other, or 'auto': half the cores, or one for each device (default: 1)",
    )
    _second_looks(run_verb)
    run_verb.add_argument("--junit", type=_path, metavar="FILE", help="also write a JUnit report")
    run_verb.add_argument(
        "--markdown", type=_path, metavar="FILE", help="also write a Markdown report of at most 64 KB"
    )
    run_verb.add_argument("--report", type=_path, metavar="FILE", help="also write the document that --json prints")
    run_verb.add_argument(
        "--github", action="store_true", help="also annotate manifests in GitHub Actions, at most ten lines on stderr"
    )

    compare = _verb(verbs, "compare", "compare_files", "compare two record or golden files under rules; runs nothing")
    compare.add_argument("--rules", type=_path, required=True, help="a YAML file with assert, inform and ignore")
    compare.add_argument("golden", type=_path, help="the reference")
    compare.add_argument("current", type=_path, help="what is judged")

    check = _verb(verbs, "check", "check_goldens", "check every golden without an engine: sealed, current, related")
    _selection(check)

    listing = _verb(verbs, "list", "list_fixtures", "list fixtures with what each proves")
    _selection(listing)

    which = _verb(verbs, "which", "which_golden", "show the golden a fixture would be judged with here, and why")
    which.add_argument("fixtures", nargs="+", metavar="FIXTURE", help="a name, or a glob such as 'scheduling/*'")
    which.add_argument("--platform", help="as on this platform (default: the machine's best)")

    explain = _verb(
        verbs, "explain", "explain_fixture", "explain a fixture: its settings, its golden, its last verdict"
    )
    explain.add_argument("fixtures", nargs=1, metavar="FIXTURE")
    explain.add_argument("--platform", help="as on this platform (default: the machine's best)")

    diff = _verb(verbs, "diff", "diff_goldens", "show what changed in the goldens between two git revisions, in words")
    diff.add_argument(
        "revisions", metavar="BASE..HEAD", help="two git revisions; a single one is compared with the working tree"
    )

    _verb(verbs, "lint", "lint_manifests", "check every manifest before anything runs")

    _verb(verbs, "quarantine", "list_quarantine", "list the fixtures in quarantine, who repairs them, and until when")

    regen = _verb(verbs, "regen", "regenerate_goldens", "prove that a fixture is deterministic, then record its golden")
    _selection(regen)
    regen.add_argument("--reason", required=True, help="why the goldens change; stored in them")
    regen.add_argument("--out", type=_path, metavar="DIR", help="write candidates there instead of goldens")
    regen.add_argument("--yes", action="store_true", help="do not ask before writing")

    _candidate_verbs(verbs)

    _soak_arguments(
        _verb(verbs, "soak", "soak_fixtures", "run fixtures many times, varied, and find any false alarm; it resumes")
    )

    _gate_verbs(verbs)

    models = verbs.add_parser("models", help="list models, and fetch those that are not in the repository")
    of_models = models.add_subparsers(title="verbs", metavar="VERB", required=True, parser_class=_Parser)
    _verb(of_models, "list", "models_list", "list models, and which of them are here")
    fetching = _verb(of_models, "fetch", "models_fetch", "download a model, convert it, and verify every checksum")
    fetching.add_argument("models", nargs="*", metavar="MODEL", help="a name from `golden models list` (default: all)")
    return parser


def _verb(verbs: argparse._SubParsersAction[_Parser], name: str, module: str, text: str) -> _Parser:
    verb = verbs.add_parser(
        name,
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=_HELP_EPILOG,
        allow_abbrev=False,
    )
    verb.add_argument("--json", action="store_true", help="print one JSON document on stdout; logs go to stderr")
    verb.set_defaults(module=module)
    return verb


def _candidate_verbs(verbs: argparse._SubParsersAction[_Parser]) -> None:
    pending = "the folder that `golden regen --out DIR` wrote (default: the candidates kept under .golden/)"
    accept = _verb(verbs, "accept", "accept_candidates", "check candidates that were proven, and make them goldens")
    accept.add_argument("folder", nargs="?", type=_path, metavar="DIR", help=pending)
    accept.add_argument("--reason", required=True, help="why these values are right; stored beside the proof's reason")
    accept.add_argument(
        "--only", action="append", default=[], metavar="CLASS", help="what may move, such as counters; repeatable"
    )
    accept.add_argument("--yes", action="store_true", help="do not ask before writing")
    review = _verb(verbs, "review", "review_candidates", "show what candidates would change, the worst first")
    review.add_argument("folder", nargs="?", type=_path, metavar="DIR", help=pending)
    for verb in (accept, review):
        verb.add_argument(
            "--fixture", action="append", default=[], dest="names", metavar="FIXTURE", help="only these; repeatable"
        )
        verb.set_defaults(fixtures=[])
    reject = _verb(verbs, "reject", "reject_candidates", "drop candidates kept under .golden/")
    reject.add_argument("names", nargs="*", metavar="FIXTURE", help="a name or a glob (default: all that are kept)")
    reject.add_argument("--yes", action="store_true", help="do not ask before dropping")
    prune = _verb(verbs, "prune", "prune_goldens", "remove goldens that no fixture reads")
    prune.add_argument("--yes", action="store_true", help="do not ask before removing")


def _second_looks(verb: _Parser) -> None:
    verb.add_argument(
        "--rerun-mismatches",
        type=_count,
        default=0,
        metavar="N",
        help="run a fixture that failed up to N times more, to tell FLAKY from deterministic; it stays a failure",
    )
    verb.add_argument(
        "--retry-infrastructure",
        type=_count,
        default=0,
        metavar="N",
        help="try an engine that crashed, hung or ran out of memory up to N times more; every attempt is shown",
    )


def _gate_verbs(verbs: argparse._SubParsersAction[_Parser]) -> None:
    gate = _verb(verbs, "gate", "gate_run", "validate exactly one commit for a merge queue, and give one verdict")
    gate.add_argument("--base", metavar="SHA", help="what the change is put upon")
    gate.add_argument("--head", metavar="SHA", help="the commit to validate; the working tree must be exactly it")
    gate.add_argument("--vetted", metavar="SHA", help="refuse unless the head is this commit")
    gate.add_argument("--shard", metavar="SHARE", help="only this share of the lane, as `golden gate plan` prints it")
    _lane_arguments(gate)
    _second_looks(gate)
    _verdict_arguments(gate)
    of_gate = gate.add_subparsers(title="verbs", metavar="VERB", required=False, parser_class=_Parser)
    plan = _verb(of_gate, "plan", "gate_plan", "deal a lane over shards, and print the matrix for GitHub Actions")
    plan.add_argument("--shards", type=int, required=True, metavar="N", help="at most so many jobs")
    plan.add_argument("--times", type=_path, metavar="FILE", help="a document with the seconds that fixtures took")
    _lane_arguments(plan)
    verdict = _verb(of_gate, "verdict", "gate_verdict", "merge what shards found; one missing, doubled or odd fails")
    verdict.add_argument("folders", nargs="+", type=_path, metavar="DIR", help="where verdicts of shards lie")
    verdict.add_argument("--head", metavar="SHA", help="refuse unless all of them are of this commit")
    verdict.add_argument("--lane", metavar="NAME", help="refuse unless all of them are of this lane")
    verdict.add_argument(
        "--state", type=_path, metavar="FILE", help="keep the passes of all shards there if it is green"
    )
    _verdict_arguments(verdict)


def _lane_arguments(verb: _Parser) -> None:
    verb.add_argument("--lane", metavar="NAME", help="a lane of gate.yaml (default: its first)")
    verb.add_argument("--state", type=_path, metavar="FILE", help="earlier passes (default: .golden/gate-passes.json)")


def _verdict_arguments(verb: _Parser) -> None:
    verb.add_argument("--verdict", type=_path, metavar="FILE", help="the verdict (default: .golden/gate-verdict.json)")
    verb.add_argument("--summary", type=_path, metavar="FILE", help="also append the summary as Markdown")


def _soak_arguments(soak: _Parser) -> None:
    _selection(soak)
    soak.add_argument("--runs", type=int, default=200, help="runs of each fixture (default: 200)")
    soak.add_argument("--slow-runs", type=int, default=20, help="runs of a slow fixture (default: 20)")
    soak.add_argument("--slow-after-s", type=float, default=2.0, help="seconds a run that make one slow (default: 2)")
    begin = soak.add_mutually_exclusive_group()
    begin.add_argument("--resume", action="store_true", help="go on with the runs that are missing (the default)")
    begin.add_argument("--fresh", action="store_true", help="forget the runs so far")
    soak.add_argument("--only", type=int, metavar="K", help="do run K of one fixture again, and keep nothing")
    soak.add_argument("--report", type=_path, metavar="FILE.md", help="also write a Markdown report")


def _selection(verb: _Parser) -> None:
    verb.add_argument("fixtures", nargs="*", metavar="FIXTURE", help="a name or a glob (default: all)")
    verb.add_argument("--tag", action="append", default=[], dest="tags", help="only fixtures with this tag; repeatable")
    verb.add_argument("--platform", help="only on this platform (default: the machine's best that a fixture names)")
