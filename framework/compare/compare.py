"""The comparison of one record with one golden: structure, counters, tokens, text, routing, log-probs, performance.

It is total: any two JSON values give a `Comparison`, never an exception. What is recorded and declared nowhere is a
finding, and so is a rule that matches nothing; the silence of a comparison always means that it judged.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from framework.compare.fields import SECTION_TYPES
from framework.compare.finding import Comparison, Finding, FindingClass
from framework.compare.judge_value import judge_presence, judge_value
from framework.compare.paths import extend
from framework.compare.performance import difference_of_work
from framework.compare.requests import compare_requests
from framework.compare.rule import RuleKind
from framework.compare.rules import Rules
from framework.compare.show import as_finding_value, shown, type_name
from framework.compare.tally import Tally

RECORD_SCHEMA: Final = "golden.record/1"
GOLDEN_SCHEMA: Final = "golden.golden/1"

PERFORMANCE: Final = "performance"
_HEADER: Final = ("schema", "fixture", "requests", *SECTION_TYPES)
_STAGES: Final = (
    (FindingClass.STALE, FindingClass.SEAL, FindingClass.STALE_REGEN),
    (FindingClass.SETTINGS_DRIFT,),
    (FindingClass.STRUCTURE, FindingClass.NON_FINITE),
    (FindingClass.RULES,),
    (FindingClass.LENGTH,),
    (FindingClass.COUNTER,),
    (FindingClass.TOKEN,),
    (FindingClass.TEXT,),
    (FindingClass.ROUTING,),
    (FindingClass.LOGPROB,),
    (FindingClass.PERFORMANCE,),
    (FindingClass.RELATION,),
    (FindingClass.WITNESS,),
)
_STAGE_OF: Final = {kind: stage for stage, kinds in enumerate(_STAGES) for kind in kinds}


def compare_records(golden: Any, current: Any, rules: Rules) -> Comparison:
    """Compare the record `current` with `golden`, which is the reference of every tolerance.

    Both are JSON values; each may be a record or a golden. Seal, provenance and hashes of a golden are not compared.
    """
    tally = Tally(rules)
    if type(golden) is dict and type(current) is dict:
        _compare_header(golden, current, tally)
        compare_requests(golden.get("requests"), current.get("requests"), tally)
        for section in SECTION_TYPES:
            _compare_section(section, golden, current, tally)
        _compare_work(golden, current, tally)
        tally.close()
    else:
        names = f"golden is {type_name(golden)}, current {type_name(current)}"
        tally.add(Finding(FindingClass.STRUCTURE, "record", "structure", f"not two records: {names}"))
    return Comparison(in_order(tally.findings), tally.compared, tally.informed, tally.ignored)


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings as they are reported: what explains most first, and as found within a class."""
    last = len(_STAGES)
    return tuple(sorted(findings, key=lambda finding: _STAGE_OF.get(finding.kind, last)))


def _compare_header(golden: dict[str, Any], current: dict[str, Any], tally: Tally) -> None:
    for side in (golden, current):
        schema = side.get("schema")
        if schema not in (RECORD_SCHEMA, GOLDEN_SCHEMA):
            message = f"the schema is {shown(schema)}, not {RECORD_SCHEMA} or {GOLDEN_SCHEMA}"
            tally.add(Finding(FindingClass.STRUCTURE, "schema", "structure", message))
            break
    reference, value = golden.get("fixture"), current.get("fixture")
    if type(reference) is not str or reference != value:
        message = f"records of two fixtures: golden {shown(reference)}, current {shown(value)}"
        sides = as_finding_value(reference), as_finding_value(value)
        tally.add(Finding(FindingClass.STRUCTURE, "fixture", "structure", message, *sides))
    for side in (golden, current):
        if side.get("schema") != GOLDEN_SCHEMA:
            for name in side:
                if name not in _HEADER:
                    tally.is_judged(tally.rules.for_top_level(name), name, name, side[name])


def _compare_work(golden: dict[str, Any], current: dict[str, Any], tally: Tally) -> None:
    """Figures of different work say nothing about each other. Where a finding shows the difference, that is enough."""
    judged = [name for name in tally.rules.asserts_in(PERFORMANCE) if tally.rules.asserted[name].kind is RuleKind.RATIO]
    if not judged or any(finding.path.startswith("requests") for finding in tally.findings):
        return
    difference = difference_of_work(golden, current)
    if difference is not None:
        message = f"figures of different work cannot be compared: {difference}"
        rule = f"{judged[0]}: {tally.rules.asserted[judged[0]]}"
        tally.add(Finding(FindingClass.PERFORMANCE, PERFORMANCE, rule, message))


def _compare_section(section: str, golden: dict[str, Any], current: dict[str, Any], tally: Tally) -> None:
    """Compare one map of names, such as `counters`, of two records."""
    forms = [type_name(side[section]) if section in side else "missing" for side in (golden, current)]
    asserted = tally.rules.asserts_in(section)
    if asserted and forms not in (["a map", "a map"], ["missing", "missing"]):
        tally.matched.update(asserted)
        message = f"golden is {forms[0]}, current is {forms[1]}: both must be maps by name"
        tally.add(Finding(FindingClass.STRUCTURE, section, "structure", message))
    elif set(forms) <= {"a map", "missing"}:
        _compare_entries(section, golden.get(section, {}), current.get(section, {}), tally)
    else:
        decision = tally.rules.for_entry(section, "")
        tally.is_judged(decision, section, section, golden.get(section, current.get(section)))


def _compare_entries(section: str, golden: dict[str, Any], current: dict[str, Any], tally: Tally) -> None:
    declared_by_name = tally.rules.touches(section)
    for name in (*golden, *(name for name in current if name not in golden)):
        path = extend(section, [name])
        decision = tally.rules.for_entry(section, name)
        undeclared_as = path if declared_by_name else section
        if not tally.is_judged(decision, undeclared_as, path, golden.get(name, current.get(name))):
            continue
        assert decision.rule is not None, "only a rule is judged"
        if name in golden and name in current:
            tally.findings.extend(
                judge_value(
                    golden[name],
                    current[name],
                    path=path,
                    name=decision.name,
                    field=SECTION_TYPES[section],
                    rule=decision.rule,
                )
            )
        else:
            sides = (golden.get(name), current.get(name))
            rule_name = f"{decision.name}: {decision.rule}"
            tally.add(judge_presence(path, rule_name, sides, in_golden=name in golden))
