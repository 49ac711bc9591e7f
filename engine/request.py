"""Requests, their sampling parameters, and the rules by which they end. No torch here."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class FinishReason(Enum):
    """Why a request ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a request's tokens are chosen (greedily) and when it ends.

    `stop_token_ids` end a request besides the model's end-of-sequence tokens, which `ignore_eos` disregards; the token
    that stops is kept. `logprobs` asks for the log-probability of every generated token.
    """

    max_new_tokens: int = 16
    stop_token_ids: frozenset[int] = frozenset()
    ignore_eos: bool = False
    logprobs: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks for. `arrival_step` counts loop calls, idle ones included."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    arrival_step: int = 0


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """What became of a request.

    `margins` holds the top-1 minus top-2 logit at each generated position; `generated_logprobs` is None unless asked
    for; a request with an `error` generated nothing. `generated_text` is filled in by whoever has the tokenizer.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    generated_token_ids: tuple[int, ...]
    finish_reason: FinishReason
    error: str | None
    generated_logprobs: tuple[float, ...] | None
    margins: tuple[float, ...]
    generated_text: str = ""

    @classmethod
    def failed(cls, request: Request, error: str) -> RequestOutput:
        """Return the output of a request that was refused."""
        return cls._without_tokens(request, FinishReason.ERROR, error)

    @classmethod
    def cancelled(cls, request: Request) -> RequestOutput:
        """Return the output of a request that was cancelled before it was queued."""
        return cls._without_tokens(request, FinishReason.CANCELLED, None)

    @classmethod
    def _without_tokens(cls, request: Request, reason: FinishReason, error: str | None) -> RequestOutput:
        logprobs = () if request.sampling.logprobs else None
        return cls(request.request_id, request.prompt_token_ids, (), reason, error, logprobs, ())


@dataclass(frozen=True, slots=True)
class Sample:
    """One sampled token as it comes back from the device."""

    token_id: int
    logprob: float
    margin: float


@dataclass(slots=True, eq=False)
class RequestState:
    """A live request inside the scheduler.

    `token_ids` are known (prompt, then generated); `promised` counts samples of launched rows that are not resolved
    yet; `computed` counts tokens whose keys and values are in the cache once every launched plan has run. `in_flight`
    counts launched plans that name the request: its slot and blocks stay its own until that is zero.
    `last_token_on_device` says that its latest sample stands in `last_token[slot]`, so that it decodes.
    """

    request: Request
    end_token_ids: frozenset[int]
    token_ids: list[int]
    samples: list[Sample] = field(default_factory=list)
    computed: int = 0
    promised: int = 0
    in_flight: int = 0
    slot: int | None = None
    blocks: list[int] = field(default_factory=list)
    last_token_on_device: bool = False
    evicted: bool = False
    finish_reason: FinishReason | None = None
    error: str | None = None

    @classmethod
    def start(cls, request: Request, eos_token_ids: frozenset[int]) -> RequestState:
        """Return the state of a request that has just been queued."""
        ends = request.sampling.stop_token_ids
        if not request.sampling.ignore_eos:
            ends = ends | eos_token_ids
        return cls(request=request, end_token_ids=ends, token_ids=list(request.prompt_token_ids))

    @property
    def prompt_length(self) -> int:
        """Number of prompt tokens."""
        return len(self.request.prompt_token_ids)

    @property
    def uncomputed(self) -> int:
        """Tokens known or promised that no launched plan has computed."""
        return len(self.token_ids) + self.promised - self.computed

    @property
    def fully_promised(self) -> bool:
        """Whether every token the request may generate is known or already in flight."""
        return len(self.samples) + self.promised >= self.request.sampling.max_new_tokens

    @property
    def finished(self) -> bool:
        """Whether the request has ended."""
        return self.finish_reason is not None

    def accept(self, sample: Sample) -> bool:
        """Take a resolved sample, end the request if the sample ends it, and return whether it did."""
        assert not self.finished, "a finished request takes no sample"
        self.promised -= 1
        self.token_ids.append(sample.token_id)
        self.samples.append(sample)
        if sample.token_id in self.end_token_ids:
            self.finish_reason = FinishReason.STOP
        elif len(self.samples) == self.request.sampling.max_new_tokens:
            self.finish_reason = FinishReason.LENGTH
        return self.finished

    def output(self) -> RequestOutput:
        """Return what the caller gets of a finished request."""
        assert self.finish_reason is not None, "only a finished request has an output"
        if self.error is not None:
            return RequestOutput.failed(self.request, self.error)
        logprobs = tuple(sample.logprob for sample in self.samples) if self.request.sampling.logprobs else None
        return RequestOutput(
            request_id=self.request.request_id,
            prompt_token_ids=self.request.prompt_token_ids,
            generated_token_ids=tuple(sample.token_id for sample in self.samples),
            finish_reason=self.finish_reason,
            error=None,
            generated_logprobs=logprobs,
            margins=tuple(sample.margin for sample in self.samples),
        )
