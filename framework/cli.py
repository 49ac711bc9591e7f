"""The command `golden`: arguments in, a verb's module called, an exit code out.

Verbs are imported by name when they are called, so that one that compares two files does not wait for what another
needs in order to run an engine.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from framework.errors import ExitCode, GoldenInferenceError, UsageError
from framework.report.streams import log, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130
_BROKEN_PIPE = 141
_HELP_EPILOG = """exit codes: 0 good, 1 regression, 2 usage, 10 manifest, lint or malformed rules, 11 engine crash
or time limit, 12 golden missing, stale, unreadable or its seal broken, 13 nothing selected or all skipped"""


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are errors like all others, so that `--json` holds for them too."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; `{self.prog} --help` shows what there is")


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and leave the process with its exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    code = _BROKEN_PIPE  # stands if the reader of our output left before there was a verdict
    try:
        code = int(run(given))
        sys.stdout.flush()
    except KeyboardInterrupt:
        log("golden: interrupted")
        code = _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def run(arguments: Sequence[str]) -> ExitCode:
    """Run one verb and return its exit code; what a user did wrong is printed, never raised."""
    try:
        try:
            parsed = _parser().parse_args(arguments)
        except SystemExit:  # argparse has printed what `--help` asked for
            return ExitCode.GOOD
        code = importlib.import_module(f"framework.verbs.{parsed.module}").run(parsed)
    except GoldenInferenceError as error:
        if "--json" in arguments:
            print_json({"verdict": "ERROR", "exit_code": int(error.exit_code), "error": str(error)})
        log(f"golden: {error}")
        return error.exit_code
    assert isinstance(code, ExitCode), "a verb returns its exit code"
    return code


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="golden",
        description="Judge an inference engine against recorded golden values.",
        epilog=_HELP_EPILOG,
    )
    parser.add_argument(
        "--root",
        type=Path,
        help="the folder with fixtures/ and goldens/ (default: the nearest parent that has both)",
    )
    parser.add_argument("--adapter", metavar="MODULE:CLASS", help="the engine to judge (default: the one shipped)")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True, parser_class=_Parser)

    run_verb = _verb(verbs, "run", "run_fixtures", "run fixtures and judge them against their goldens")
    _selection(run_verb)
    run_verb.add_argument("--junit", type=Path, metavar="FILE", help="also write a JUnit report")

    compare = _verb(verbs, "compare", "compare_files", "compare two record or golden files under rules; runs nothing")
    compare.add_argument("--rules", type=Path, required=True, help="a YAML file with assert, inform and ignore")
    compare.add_argument("golden", type=Path, help="the reference")
    compare.add_argument("current", type=Path, help="what is judged")

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

    _verb(verbs, "lint", "lint_manifests", "check every manifest before anything runs")

    regen = _verb(verbs, "regen", "regenerate_goldens", "prove that a fixture is deterministic, then record its golden")
    _selection(regen)
    regen.add_argument("--reason", required=True, help="why the goldens change; stored in them")
    regen.add_argument("--out", type=Path, metavar="DIR", help="write candidates there instead of goldens")
    regen.add_argument("--yes", action="store_true", help="do not ask before writing")
    return parser


def _verb(verbs: argparse._SubParsersAction[_Parser], name: str, module: str, text: str) -> _Parser:
    verb = verbs.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=_HELP_EPILOG)
    verb.add_argument("--json", action="store_true", help="print one JSON document on stdout; logs go to stderr")
    verb.set_defaults(module=module)
    return verb


def _selection(verb: _Parser) -> None:
    verb.add_argument("fixtures", nargs="*", metavar="FIXTURE", help="a name or a glob (default: all)")
    verb.add_argument("--tag", action="append", default=[], dest="tags", help="only fixtures with this tag; repeatable")
    verb.add_argument("--platform", help="only on this platform (default: the machine's best that a fixture names)")
