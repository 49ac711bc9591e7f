"""What a comparison has found and counted so far, and which names no rule covers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from framework.compare.finding import Finding, FindingClass
from framework.compare.rules import Decision, Rules, Treatment
from framework.compare.walk import count_leaves
from framework.manifest.suggest import did_you_mean


@dataclass(slots=True)
class Tally:
    """The growing result of one comparison."""

    rules: Rules
    findings: list[Finding] = field(default_factory=list)
    compared: int = 0
    informed: int = 0
    ignored: int = 0
    matched: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    undeclared: dict[str, str] = field(default_factory=dict)

    def add(self, finding: Finding) -> None:
        """Add one finding."""
        self.findings.append(finding)

    def is_judged(self, decision: Decision, name: str, path: str, value: Any) -> bool:
        """Count `value`, which stands at `path`, under `decision`, and return whether it must be judged.

        `name` is what an undeclared value is reported under, once however often it occurs.
        """
        self.seen.add(name)
        if decision.treatment is Treatment.ASSERT:
            self.matched.add(decision.name)
            self.compared += count_leaves(value)
        elif decision.treatment is Treatment.INFORM:
            self.informed += count_leaves(value)
        elif decision.treatment is Treatment.IGNORE:
            self.ignored += count_leaves(value)
        elif decision.treatment is Treatment.UNDECLARED:
            self.undeclared.setdefault(name, path)
        return decision.rule is not None

    def close(self) -> None:
        """Add the findings on undeclared names and on assert rules that matched nothing."""
        for name, path in self.undeclared.items():
            message = f"recorded at {path}, but no rule covers it: name it under assert, inform or ignore"
            self.add(Finding(FindingClass.RULES, name, "assert or declare", message))
        for name in self.rules.asserted:
            if name not in self.matched:
                hint = "" if name in self.seen else did_you_mean(name, self.seen)
                message = f"the rule matches nothing in the golden or in the run. {hint}".rstrip()
                self.add(Finding(FindingClass.RULES, f"assert.{name}", str(self.rules.asserted[name]), message))
