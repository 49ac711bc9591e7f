"""Routing of plans as device tensors: experts to force, and experts that were chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from engine.model.expert_tensors import MoeShape
from engine.model.step_routing import StepRouting
from engine.plan import Plan
from engine.routing import Recording, Row


@dataclass(frozen=True, slots=True)
class RoutingSteps:
    """Prepares the routing of steps; with a `recording` every token goes where it went then."""

    moe: MoeShape
    recording: Recording | None
    device: torch.device

    def begin(self, plan: Plan) -> StepRouting:
        """Return the routing of a plan, before it runs."""
        forced = None
        if self.recording is not None:
            rows: list[Row] = []
            for row in plan.rows:
                rows += self.recording.rows(row.state.request)[row.start : row.start + row.length]
            forced = torch.tensor(rows, device=self.device)
        return StepRouting.begin(self.moe, plan.num_tokens, forced, self.device)


def chosen_by_row(routing: StepRouting, lengths: Sequence[int]) -> tuple[Sequence[Row], ...]:
    """Return the expert ids of each row's tokens, once the step has run; waits for the device."""
    tokens = iter(routing.chosen.tolist())
    return tuple([next(tokens) for _ in range(length)] for length in lengths)
