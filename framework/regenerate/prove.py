"""Proves that a fixture gives the same values again and again, before any of them may become a golden.

Three runs in the same order, two of them in fresh processes, must agree in everything that is asserted. Runs that may
rightly be scheduled otherwise (another thread count, the other scheduling mode, another order of arrival) and runs
under another instruction set must agree in the per-request fields. Whatever disagrees, is not finite, misses its
witness, crashes, or hangs on a hair, is a problem, and a fixture with a problem gets no golden.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from framework.compare.compare import compare_records
from framework.compare.relations import check_relation
from framework.compare.witness import check_witnesses
from framework.errors import ExitCode
from framework.golden.codec import non_finite_paths
from framework.golden.document import build_golden
from framework.regenerate.evidence import (
    Evidence,
    Spread,
    margin_problems,
    missing_values,
    per_request_rules,
    shape_problems,
)
from framework.regenerate.tolerances import in_words, tolerance_problems, tolerance_warnings
from framework.regenerate.variations import Variation, variations
from framework.run.adapter import VariesEnvironment
from framework.run.measure import Measurement, measure
from framework.run.session import partner_of
from framework.run.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from framework.compare.finding import Finding
    from framework.compare.rules import Rules
    from framework.manifest.fixture import Fixture
    from framework.run.adapter import Adapter
    from framework.run.task import Result, Runner
    from framework.workspace import Workspace

SHOWN_FINDINGS = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a fixture gets no golden, and the exit code that this kind of problem has."""

    exit_code: ExitCode
    message: str


@dataclass(slots=True)
class Proof:
    """What the runs of one fixture showed; `record` is the first run's.

    `spread` is the largest absolute difference seen per field; `instruction_set_error` the largest difference of a
    margin between instruction sets, None where none was measured.
    """

    fixture: Fixture
    platform: str
    record: dict[str, Any] | None = None
    runs: int = 0
    spread: Spread = field(default_factory=Spread)
    instruction_set_error: float | None = None
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def refuse(self, message: str, exit_code: ExitCode = ExitCode.REGRESSION) -> None:
        """Add a problem."""
        self.problems.append(Problem(exit_code, message))

    def evidence(self) -> Evidence:
        """Return the figures that are stored with a golden."""
        return Evidence(self.runs, self.spread.as_json(), self.instruction_set_error)


@dataclass(slots=True)
class Prover:
    """Proves fixtures one after another; runners under other instruction sets live until `close`.

    `make_runner` returns a fresh runner for the environment variables it is given.
    """

    workspace: Workspace
    adapter: Adapter
    fixtures: Mapping[str, Fixture]
    make_runner: Callable[[Mapping[str, str]], Runner]
    _by_environment: dict[str, Runner] = field(default_factory=dict)
    _records: dict[str, dict[str, Any]] = field(default_factory=dict)

    def prove(self, fixture: Fixture, platform: str) -> Proof:
        """Run a fixture in all the ways that must agree."""
        proof = Proof(fixture, platform)
        task = Task(fixture, self.workspace.model_path(fixture), platform)
        first, fresh = self.make_runner({}), self.make_runner({})
        try:
            first.start()
            fresh.start()
            measurement = self._first_run(first, task, proof)
            if proof.record is None or proof.problems:
                return proof
            self._same_again(first, fresh, task, measurement, proof)
            self._agrees_otherwise(fresh, task, proof)
            self._relations_hold(fresh, proof)
        finally:
            first.close()
            fresh.close()
        self._instruction_sets_agree(task, proof)
        _margins_are_safe(proof)
        _tolerances_fit(proof)
        return proof

    def close(self) -> None:
        """End all runners."""
        for runner in self._by_environment.values():
            runner.close()
        self._by_environment.clear()

    def _first_run(self, runner: Runner, task: Task, proof: Proof) -> Measurement:
        other = self.fixtures.get(partner_of(task.fixture) or "")
        partner = Task(other, self.workspace.model_path(other), task.platform) if other else None
        measurement = measure(runner, task, partner)
        proof.runs += len(measurement.records)
        if measurement.failure is not None:
            message = f"{measurement.failure.kind}: {measurement.failure.message}"
            proof.refuse(message, ExitCode.ENGINE)
        elif measurement.record is not None:
            proof.record = measurement.record
            self._records[task.fixture.name] = measurement.record
            _is_fit_for_a_golden(proof)
        return measurement

    def _same_again(self, first: Runner, fresh: Runner, task: Task, measurement: Measurement, proof: Proof) -> None:
        rules = task.fixture.rules
        for record in measurement.records[1:]:
            _agree(proof, record, rules, "a repeated run")
        self._run_and_compare(first, task, rules, "a second run in the same process", proof)
        self._run_and_compare(fresh, task, rules, "a run in a fresh process", proof)

    def _agrees_otherwise(self, runner: Runner, task: Task, proof: Proof) -> None:
        rules = per_request_rules(task.fixture.rules)
        for variation in variations(task.fixture, self.adapter):
            self._run_and_compare(runner, variation.of(task), rules, variation.name, proof)

    def _instruction_sets_agree(self, task: Task, proof: Proof) -> None:
        adapter = self.adapter
        if task.platform != "cpu" or not isinstance(adapter, VariesEnvironment):
            return
        assert proof.record is not None, "only a fixture that ran is varied"
        rules = per_request_rules(task.fixture.rules)
        margins = Spread()
        for name, environment in adapter.environment_variants().items():
            if name not in self._by_environment:
                self._by_environment[name] = self.make_runner(environment)
            runner = self._by_environment[name]
            variation = Variation(f"a run under the instruction set {name}", {}, None)
            record = self._run_and_compare(runner, task, rules, variation.name, proof)
            if record is not None:
                margins.add(proof.record, record, ["margins"])
                proof.instruction_set_error = margins.of("margins")

    def _relations_hold(self, runner: Runner, proof: Proof) -> None:
        assert proof.record is not None, "only a fixture that ran is related"
        for relation in proof.fixture.relations:
            other = self.fixtures.get(relation.other)
            record = self._partner_record(runner, other, proof.platform) if other else None
            if record is None:
                proof.refuse(f"RELATION {relation.kind}: {relation.other} gave no record to be related to")
            else:
                _refuse_all(proof, check_relation(relation, proof.record, record, proof.fixture.rules), "")

    def _partner_record(self, runner: Runner, other: Fixture, platform: str) -> dict[str, Any] | None:
        if other.name not in self._records:
            task = Task(other, self.workspace.model_path(other), platform)
            result = runner.run(task, time_limit_s=other.time_limit_s)
            if result.record is None:
                return None
            self._records[other.name] = result.record
        return self._records[other.name]

    def _run_and_compare(
        self,
        runner: Runner,
        task: Task,
        rules: Rules,
        what: str,
        proof: Proof,
    ) -> dict[str, Any] | None:
        result: Result = runner.run(task, time_limit_s=task.fixture.time_limit_s)
        proof.runs += 1
        if result.record is None:
            assert result.failure is not None, "a result is a record or a failure"
            proof.refuse(f"{what}: {result.failure.kind}: {result.failure.message}", ExitCode.ENGINE)
            return None
        _agree(proof, result.record, rules, what)
        return result.record


def candidate(proof: Proof) -> dict[str, Any]:
    """Return the golden that a record would become, with neither hashes nor provenance."""
    assert proof.record is not None, "only a fixture that ran has a candidate"
    return build_golden(
        proof.record,
        proof.fixture.rules,
        platform=proof.platform,
        hashes={},
        manifest_sha256=proof.fixture.manifest_sha256,
        provenance={},
    )


def _is_fit_for_a_golden(proof: Proof) -> None:
    """Refuse a record that would not pass against itself, or that does not show what the fixture is about."""
    assert proof.record is not None, "only a fixture that ran can be fit"
    golden = candidate(proof)
    for message in [*shape_problems(golden, proof.fixture), *missing_values(proof.fixture, proof.record)]:
        proof.refuse(message)
    paths = non_finite_paths(golden)
    for path in paths[:SHOWN_FINDINGS]:
        proof.refuse(f"NON_FINITE {path}: a golden holds no NaN and no infinity")
    if not paths:
        _refuse_all(proof, compare_records(golden, proof.record, proof.fixture.rules).findings, "")
    _refuse_all(proof, check_witnesses(proof.fixture.witnesses, proof.record), "")


def _agree(proof: Proof, record: dict[str, Any], rules: Rules, what: str) -> None:
    """Compare another run with the first. Its figures of performance are one sample, so they are not compared."""
    assert proof.record is not None, "the first run gave the record"
    again = {**record, "performance": proof.record.get("performance", {})}
    proof.spread.add_asserted(proof.record, record, rules)
    _refuse_all(proof, compare_records(candidate(proof), again, rules).findings, f"{what} disagrees: ")


def _margins_are_safe(proof: Proof) -> None:
    assert proof.record is not None, "only a fixture that ran has margins"
    for message in margin_problems(proof.fixture, proof.record, proof.instruction_set_error):
        proof.refuse(message)


def _tolerances_fit(proof: Proof) -> None:
    assert proof.record is not None, "only a fixture that ran has a spread"
    rules, spread = proof.fixture.rules, proof.spread.as_json()
    for message in in_words(tolerance_problems(rules, spread, proof.record)):
        proof.refuse(message)
    proof.warnings.extend(in_words(tolerance_warnings(rules, spread)))


def _refuse_all(proof: Proof, findings: Iterable[Finding], prefix: str) -> None:
    every = list(findings)
    for finding in every[:SHOWN_FINDINGS]:
        proof.refuse(f"{prefix}{finding.kind} {finding.path}: {finding.message}")
    if len(every) > SHOWN_FINDINGS:
        proof.refuse(f"{prefix}and {len(every) - SHOWN_FINDINGS} more findings")
