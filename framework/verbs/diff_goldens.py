"""`golden diff`: what changed in goldens and manifests between two git revisions, why, and what did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from framework.errors import ExitCode, UsageError
from framework.explain.overview import overview
from framework.explain.overview_text import overview_lines
from framework.golden.revisions import resolve_range, tree_at
from framework.report.streams import out, print_json
from framework.workspace import open_workspace

if TYPE_CHECKING:
    import argparse

    from framework.golden.revisions import Tree

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
    if arguments.json:
        print_json({"schema": "golden.diff/1", "base": titles[0], "head": titles[1], **found.as_json()})
    else:
        out("\n".join(overview_lines(found, *titles)))
    return ExitCode.GOOD


def _title(tree: Tree) -> str:
    name = tree.revision or "the working tree"
    is_hash = len(name) > _SHOWN_HASH and set(name) <= set("0123456789abcdef")
    return name[:_SHOWN_HASH] if is_hash else name
