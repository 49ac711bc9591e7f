"""From a manifest file to a `Fixture`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.compare.rules import PARTS, parse_rules
from framework.compare.witness import parse_witness
from framework.errors import ManifestError
from framework.manifest.find import find_manifests, source_name
from framework.manifest.fixture import Fixture, Relation, Witness
from framework.manifest.identity import manifest_sha256
from framework.manifest.schema import Violation, manifest_schema, refusals, violations
from framework.manifest.strict_yaml import Document, Mark, dotted, load_bytes, read_bounded
from framework.manifest.workload import read_workload


@dataclass(frozen=True, slots=True)
class LoadedManifests:
    """All manifests below a folder: the fixtures, by name, and the errors of those that could not be read."""

    fixtures: tuple[Fixture, ...]
    errors: tuple[ManifestError, ...]


def load_all(fixtures_root: Path) -> LoadedManifests:
    """Load every `*.yaml` below `fixtures_root`, `models/` and hidden folders apart.

    One broken manifest does not hide the others. What would never be run is an error: a file named otherwise, such as
    `*.yml`, a link to a folder, a folder that cannot be read.
    """
    found = find_manifests(fixtures_root)
    fixtures: list[Fixture] = []
    errors = list(found.errors)
    for path in found.paths:
        try:
            fixtures.append(load_manifest(path, fixtures_root=fixtures_root))
        except ManifestError as error:
            errors.append(error)
    return LoadedManifests(tuple(sorted(fixtures, key=lambda fixture: fixture.name)), tuple(errors))


def load_manifest(path: Path, *, fixtures_root: Path) -> Fixture:
    """Load one manifest.

    Raises:
        ManifestError: it is no manifest; the message names file, line, what is wrong and the way out.
    """
    source = source_name(path, fixtures_root)
    if path.suffix != ".yaml":
        raise ManifestError(f"{source}: a manifest is named NAME.yaml, so this one would never be run. Rename it.")
    if not _resolved(path, source).is_relative_to(fixtures_root.resolve()):
        raise ManifestError(f"{source}: leads out of {fixtures_root.name}/. Put the file itself there.")
    document = load_bytes(read_bounded(path, source), source=source)
    value = document.value
    if not isinstance(value, dict):
        raise ManifestError(f"{source}:1: a manifest is a map of keys, beginning with manifest: 1.")
    found = violations(value, manifest_schema())
    # The rules have their own parser, whose words are plainer than those of the schema.
    _raise_for(document, (violation for violation in found if not _is_about_rules(violation)))
    lines = document.lines()
    rules = parse_rules(value, where=source, lines=lines)
    _raise_for(document, found)
    _check_name(document, path, fixtures_root)
    workload = read_workload(document, folder=path.parent, repository=fixtures_root.parent)
    engine = value.get("engine", {})
    ranks = value.get("ranks", 1)
    witnesses = tuple(_witnesses(document))
    relations = tuple(Relation(item["kind"], item["with"]) for item in value.get("relations", ()))
    return Fixture(
        name=value["name"],
        path=path,
        summary=value["summary"],
        model=value["model"],
        engine=engine,
        workload=workload,
        rules=rules,
        tags=tuple(value.get("tags", ())),
        ranks=ranks,
        witnesses=witnesses,
        relations=relations,
        platforms=tuple(value.get("platforms", ("cpu",))),
        time_limit_s=float(value.get("time_limit_s", 120)),
        owner=value.get("owner", ""),
        manifest_sha256=manifest_sha256(
            model=value["model"],
            engine=engine,
            ranks=ranks,
            workload=workload,
            rules=rules,
            witnesses=witnesses,
            relations=relations,
        ),
        lines=lines,
    )


def _resolved(path: Path, source: str) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise ManifestError(f"{source}: a link that leads to itself. Put the file itself there.") from error


def _is_about_rules(violation: Violation) -> bool:
    return bool(violation.place) and violation.place[0] in PARTS


def _raise_for(document: Document, found: Iterable[Violation]) -> None:
    messages = refusals(document, found)
    if messages:
        raise ManifestError("\n".join(messages))


def _position(document: Document, mark: Mark) -> str:
    return f"{document.source}:{mark.line}:{mark.column}"


def _check_name(document: Document, path: Path, fixtures_root: Path) -> None:
    wanted = path.relative_to(fixtures_root).with_suffix("").as_posix()
    if document.value["name"] != wanted:
        position = _position(document, document.mark(("name",)))
        name = document.value["name"]
        raise ManifestError(f'{position}: name is "{name}", but the file is {wanted}.yaml. Write name: {wanted}.')


def _witnesses(document: Document) -> Iterator[Witness]:
    texts: Any = document.value.get("witness", ())
    for index, text in enumerate(texts):
        try:
            yield parse_witness(text)
        except ManifestError as error:
            place = ("witness", index)
            raise ManifestError(f"{_position(document, document.mark(place))}: {dotted(place)}: {error}") from error
