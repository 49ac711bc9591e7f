"""What the lint rules look at, and what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from framework.manifest.find import source_name
from framework.manifest.fixture import Fixture
from framework.manifest.suggest import as_sentence
from framework.run.adapter import SettingDescription


class Severity(StrEnum):
    """An error ends with exit code 10; a warning is shown."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class LintProblem:
    """One problem: where (`file` from the root, `line`, dotted `path`), what and why, and the way out."""

    file: str
    line: int
    path: str
    message: str
    way_out: str
    severity: Severity = Severity.ERROR

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.path}: {as_sentence(self.message)} {as_sentence(self.way_out)}"


@dataclass(frozen=True, slots=True)
class Linted:
    """All that the rules look at. `root` holds `fixtures/` and `goldens/`."""

    fixtures: Sequence[Fixture]
    root: Path
    settings: Mapping[str, SettingDescription]
    check_settings: Callable[[Mapping[str, Any]], None]
    check_sampling: Callable[[Mapping[str, Any]], None] | None = None
    check_fixture: Callable[[Fixture], None] | None = None

    @property
    def fixtures_root(self) -> Path:
        """The folder of manifests."""
        return self.root / "fixtures"

    @property
    def goldens_root(self) -> Path:
        """The folder of goldens."""
        return self.root / "goldens"

    def problem(
        self, fixture: Fixture, path: str, message: str, way_out: str, severity: Severity = Severity.ERROR
    ) -> LintProblem:
        """Return a problem at the dotted `path` of a manifest."""
        outer = path
        while outer and outer not in fixture.lines:
            outer = outer.rpartition(".")[0]
        line = fixture.lines.get(outer, 1)
        return LintProblem(source_name(fixture.path, self.fixtures_root), line, path, message, way_out, severity)


LintRule = Callable[[Linted], Iterator[LintProblem]]
"""One rule: from everything that is linted to the problems of one kind."""
