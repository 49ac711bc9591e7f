"""`golden diff`: what changed in goldens and manifests between two git revisions, why, and what did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode, ManifestError, UsageError
from framework.explain.overview import overview
from framework.explain.overview_text import overview_lines
from framework.golden.revisions import file_at, resolve_range, tree_at
from framework.quarantine.changes import quarantine_changes
from framework.quarantine.entry import NO_QUARANTINE
from framework.quarantine.load import QUARANTINE_FILE, parse_quarantine
from framework.report.streams import log, out, print_json
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from framework.golden.revisions import Tree
    from framework.quarantine.entry import Quarantine

_SHOWN_HASH = 12


def run(arguments: argparse.Namespace) -> ExitCode:
    """Show how two revisions differ; a single one is compared with the working tree."""
    root = open_workspace(arguments.root, arguments.adapter).root
    base, head = resolve_range(root, arguments.revisions)
    goldens = tree_at(root, base, "goldens", ".json"), tree_at(root, head, "goldens", ".json")
    manifests = tree_at(root, base, "fixtures", ".yaml"), tree_at(root, head, "fixtures", ".yaml")
    titles = [_title(tree) for tree in goldens]
    if not any(tree.files for tree in goldens):
        raise UsageError(f"{root}: neither {titles[0]} nor {titles[1]} holds a golden; name two revisions that do")
    found = overview(goldens, manifests)
    quarantine = quarantine_changes(_quarantine_at(root, base), _quarantine_at(root, head))
    if arguments.json:
        changes = [change.as_json() for change in quarantine]
        document = {"schema": "golden.diff/1", "base": titles[0], "head": titles[1], **found.as_json()}
        print_json(document | {"quarantine": changes})
    else:
        first, *others = overview_lines(found, *titles)
        out("\n".join([first, *(change.in_words() for change in quarantine), *others]))
    return ExitCode.GOOD


def _quarantine_at(root: Path, revision: str | None) -> Quarantine:
    """Return the quarantine of a revision; one that cannot be read is for `golden lint`, and is said to be none."""
    data = file_at(root, revision, QUARANTINE_FILE)
    if data is None:
        return NO_QUARANTINE
    source = QUARANTINE_FILE if revision is None else f"{revision[:_SHOWN_HASH]}:{QUARANTINE_FILE}"
    try:
        return parse_quarantine(data, source=source)
    except ManifestError as error:
        log(f"golden: {error}")
        return NO_QUARANTINE


def _title(tree: Tree) -> str:
    name = tree.revision or "the working tree"
    is_hash = len(name) > _SHOWN_HASH and set(name) <= set("0123456789abcdef")
    return name[:_SHOWN_HASH] if is_hash else name
