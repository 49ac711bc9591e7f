"""A device in plain Python: the step loop runs against it without torch.

Keys and values are the tokens themselves, stored in real slots of a real paged cache, and every sample is a hash of
what the row reads back through its block table. So a block that is shared, freed early or never written gives another
token, just as it does on hardware.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.config import InferenceConfig
from engine.plan import Plan, StepOutput
from engine.request import Request, Sample

VOCAB_SIZE = 64
EOS = 0


def sample_after(tokens: Sequence[int | None]) -> Sample:
    """The token that follows `tokens`, its log-probability and its margin: a function of these tokens alone."""
    digest = hashlib.sha256(repr(list(tokens)).encode()).digest()
    return Sample(token_id=digest[0] % VOCAB_SIZE, logprob=-digest[1] / 16, margin=digest[2] / 32)


def score_after(tokens: Sequence[int | None], token_id: int) -> float:
    """The log-probability of a prompt token that follows `tokens`."""
    return -hashlib.sha256(repr((list(tokens), token_id)).encode()).digest()[0] / 16


def text_of(token_id: int) -> str:
    """A token's text, of up to three letters; some have none."""
    return "abcabdab"[token_id % 8 : token_id % 8 + token_id // 8 % 4]


class Letters:
    """Tokens as text, one by one."""

    def add(self, token_id: int) -> str:
        return text_of(token_id)


def lone_run(request: Request) -> list[Sample]:
    """What the request generates with the device to itself, without any scheduler."""
    ends = request.sampling.stop_token_ids | (set() if request.sampling.ignore_eos else {EOS})
    tokens, samples, text = list(request.prompt_token_ids), list[Sample](), ""
    while len(samples) < request.sampling.max_new_tokens:
        samples.append(sample_after(tokens))
        tokens.append(samples[-1].token_id)
        text += text_of(samples[-1].token_id)
        if samples[-1].token_id in ends or any(stop in text for stop in request.sampling.stop_strings):
            break
    return samples


@dataclass
class SimulatedPending:
    """A plan that has not run yet: it runs when it is waited for, as late as a device may."""

    device: SimulatedDevice
    plan: Plan

    def wait(self) -> StepOutput:
        return self.device.execute(self.plan)


@dataclass
class SimulatedDevice:
    """Runs plans in the order in which they were launched."""

    config: InferenceConfig
    cache: dict[int, int] = field(default_factory=dict)
    last_token: dict[int, int] = field(default_factory=dict)
    launched: list[Plan] = field(default_factory=list)
    executed: int = 0

    def launch(self, plan: Plan) -> SimulatedPending:
        assert plan.num_tokens <= self.config.max_tokens, "the token budget holds"
        assert len({row.slot for row in plan.rows}) == len(plan.rows) <= self.config.max_requests
        written = [slot for row in plan.rows for slot in self._slots(row.block_table, row.start, row.length)]
        assert len(set(written)) == len(written), "two rows write one place of the cache"
        self.launched.append(plan)
        return SimulatedPending(self, plan)

    def execute(self, plan: Plan) -> StepOutput:
        assert self.launched[self.executed] is plan, "plans run in the order of their launches"
        self.executed += 1
        samples: list[Sample] = []
        scores: list[float] = []
        for row in plan.rows:
            tokens = list(row.token_ids)
            if row.last_from_device:
                tokens.append(self.last_token[row.slot])
            for slot, token in zip(self._slots(row.block_table, row.start, row.length), tokens, strict=True):
                self.cache[slot] = token
        for row in plan.rows:
            seen = [self.cache.get(slot) for slot in self._slots(row.block_table, 0, row.start + row.length)]
            samples.append(sample_after(seen))
            self.last_token[row.slot] = samples[-1].token_id
            ends = range(row.scored_start + 1, row.scored_start + 1 + len(row.scored_token_ids))
            assert not ends or row.start < ends.start <= ends.stop <= row.start + row.length + 1, (
                "it computes them itself"
            )
            scores += map(score_after, (seen[:end] for end in ends), row.scored_token_ids)
        return StepOutput(samples=tuple(samples), padded_row_count=0, prompt_logprobs=tuple(scores))

    def _slots(self, block_table: tuple[int, ...], start: int, length: int) -> list[int]:
        size = self.config.block_size_tokens
        return [block_table[position // size] * size + position % size for position in range(start, start + length)]
