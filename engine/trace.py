"""The schedule of a run: which step computed which positions of which requests. No torch here.

It explains a run and decides nothing. Numbers only are kept, 24 bytes a row, since a long run has many rows.
"""

from __future__ import annotations

import itertools
from array import array
from typing import Any

from engine.plan import Plan


class ScheduleTrace:
    """Every launched plan of one run, in the order of launching."""

    def __init__(self) -> None:
        """Start before the first plan."""
        self._request_ids: list[str] = []
        self._numbers: dict[str, int] = {}
        self._plans = array("q")  # step and number of rows of each plan
        self._rows = array("q")  # number of the request, first position, count of each row

    def add(self, step: int, plan: Plan) -> None:
        """Keep a plan that the loop's call number `step` launched, counted from 0 like arrival steps."""
        self._plans.extend((step, len(plan.rows)))
        for row in plan.rows:
            request_id = row.state.request.request_id
            number = self._numbers.setdefault(request_id, len(self._request_ids))
            if number == len(self._request_ids):
                self._request_ids.append(request_id)
            self._rows.extend((number, row.start, row.length))

    def as_json(self) -> list[dict[str, Any]]:
        """Return the plans as `{"step": 17, "rows": [["0", 64, 1]]}`: request, first position, how many."""
        rows = zip(*[iter(self._rows)] * 3, strict=True)
        return [
            {
                "step": step,
                "rows": [[self._request_ids[number], *rest] for number, *rest in itertools.islice(rows, count)],
            }
            for step, count in zip(*[iter(self._plans)] * 2, strict=True)
        ]
