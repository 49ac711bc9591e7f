"""Requests, their sampling parameters, and the rules by which they end. No torch here."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from engine.config import ConfigError, Setting, described_fields
from engine.stop_strings import StopStringWatch, TextStream


class FinishReason(Enum):
    """Why a request ended."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    ERROR = "error"


def _parameter(default: Any, text: str, **constraints: Any) -> Any:
    """Return a field of `SamplingParams`; `constraints` are further fields of its `Setting`."""
    return field(default=default, metadata={"help": text, **constraints})


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How a request's tokens are chosen, when it ends, and what is recorded of it; checked on construction.

    At `temperature` 0 the best token is taken and `top_k`, `top_p`, `min_p` and `seed` are of no effect. Otherwise the
    logits are divided by it, `top_k`, `top_p` and `min_p` leave out tokens in this order, each looking at what the ones
    before it have left, and one of the rest is drawn, by `seed` and position alone. A request without a seed has that
    of its prompt (`Request.seed`).

    `stop_token_ids` end a request besides the model's end-of-sequence tokens, which `ignore_eos` disregards. So do
    `stop_strings`, wherever they begin and end in the tokens. The token that stops is kept, the stop string is not part
    of the text.

    Raises:
        ConfigError: a parameter has a value that is not allowed.
    """

    max_new_tokens: int = _parameter(
        64, "most tokens to generate; 0 computes the prompt only", minimum=0, maximum=10_000_000
    )
    temperature: float = _parameter(0.0, "divides the logits; 0 takes the best token", minimum=0, maximum=1000)
    top_k: int = _parameter(0, "draw among the k best tokens; 0 means all", minimum=0, maximum=(1 << 31) - 1)
    top_p: float = _parameter(1.0, "draw among the best tokens that together have this probability", above=0, maximum=1)
    min_p: float = _parameter(
        0.0, "draw among tokens at least this fraction as probable as the best one", minimum=0, maximum=1
    )
    seed: int | None = _parameter(
        None, "seed of the draws; null derives it from the prompt", minimum=0, maximum=(1 << 63) - 1
    )
    stop_token_ids: frozenset[int] = frozenset()
    stop_strings: tuple[str, ...] = ()
    ignore_eos: bool = _parameter(default=False, text="go on past the model's end of sequence")
    logprobs: bool = _parameter(default=False, text="record the log-probability of each generated token")
    prompt_logprobs: bool = _parameter(
        default=False, text="record the log-probability of each prompt token after the first"
    )
    top_n: int = _parameter(0, "record the n best tokens at each generated position", minimum=0, maximum=1000)

    def __post_init__(self) -> None:
        for parameter in sampling_parameters().values():
            parameter.check(getattr(self, parameter.name))
        for token_id in _items("stop_token_ids", self.stop_token_ids, frozenset):
            if type(token_id) is not int or token_id < 0:
                raise ConfigError(f"sampling stop_token_ids: {token_id!r} is no token id; take whole numbers from 0 on")
        for text in _items("stop_strings", self.stop_strings, tuple):
            if not isinstance(text, str) or not text:
                raise ConfigError(f"sampling stop_strings: {text!r} is not a text that could occur; leave it out")

    @property
    def is_drawn(self) -> bool:
        """Whether tokens are drawn at random instead of taken greedily."""
        return self.temperature > 0

    @property
    def is_filtered(self) -> bool:
        """Whether some tokens may be left out of a draw."""
        return self.top_k > 0 or self.top_p < 1 or self.min_p > 0


def sampling_parameters() -> Mapping[str, Setting]:
    """Return the parameters of `SamplingParams` that hold a single value, by name."""
    return described_fields(SamplingParams, noun="sampling", flag_prefix="--")


def _items(name: str, values: object, kind: type[frozenset[Any] | tuple[Any, ...]]) -> Any:
    if not isinstance(values, kind):
        raise ConfigError(f"sampling {name}: {values!r} is a {type(values).__name__}; give it as a {kind.__name__}")
    return values


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asks for. `arrival_step` counts loop calls, idle ones included."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    sampling: SamplingParams = field(default_factory=SamplingParams)
    arrival_step: int = 0

    @property
    def seed(self) -> int:
        """The seed of the request's draws: its own, or else 63 bits of SHA-256 over its prompt's token ids."""
        if self.sampling.seed is not None:
            return self.sampling.seed
        digest = hashlib.sha256(" ".join(map(str, self.prompt_token_ids)).encode()).digest()
        return int.from_bytes(digest[:8], "big") >> 1


class TokenLogprob(NamedTuple):
    """A token and its log-probability: float32 log-softmax of the raw logits."""

    token_id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """What became of a request.

    `margins` holds the top-1 minus top-2 logit at each generated position. `generated_logprobs`, `prompt_logprobs` (one
    less than prompt tokens) and `top_n_logprobs` (by log-probability, then id) are None unless asked for. A request
    with an `error` generated nothing. `generated_text` is filled in by whoever has the tokenizer; it ends before the
    character at `stop_string_at`, if a stop string was found there. `routing_indices` has a row for every token but the
    last generated one: its expert ids in each layer with experts, best first; None unless routing is recorded.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    generated_token_ids: tuple[int, ...]
    finish_reason: FinishReason
    error: str | None
    generated_logprobs: tuple[float, ...] | None
    margins: tuple[float, ...]
    prompt_logprobs: tuple[float, ...] | None
    top_n_logprobs: tuple[tuple[TokenLogprob, ...], ...] | None
    stop_string_at: int | None = None
    routing_indices: tuple[Sequence[Sequence[int]], ...] | None = None
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
        sampling = request.sampling
        return cls(
            request_id=request.request_id,
            prompt_token_ids=request.prompt_token_ids,
            generated_token_ids=(),
            finish_reason=reason,
            error=error,
            generated_logprobs=() if sampling.logprobs else None,
            margins=(),
            prompt_logprobs=() if sampling.prompt_logprobs else None,
            top_n_logprobs=() if sampling.top_n else None,
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """One sampled token as it comes back from the device, with the best tokens there if the request asks for them."""

    token_id: int
    logprob: float
    margin: float
    top: tuple[TokenLogprob, ...] = ()


@dataclass(slots=True, eq=False)
class RequestState:
    """A live request inside the scheduler.

    `token_ids` are known (prompt, then generated); `promised` counts samples of launched rows that are not resolved
    yet; `computed` counts tokens whose keys and values are in the cache once every launched plan has run. `in_flight`
    counts launched plans that name the request: its slot and blocks stay its own until that is zero.
    `last_token_on_device` says that its latest sample stands in `last_token[slot]`, so that it decodes. `scored` counts
    the prompt tokens whose log-probability is known or in flight, the first one, which has none, included; an eviction
    leaves it as it is, so that none is taken twice. `routing` has the expert ids of every token that was computed, from
    position 0 on; None unless they are recorded.
    """

    request: Request
    seed: int
    end_token_ids: frozenset[int]
    stop_strings: StopStringWatch | None
    token_ids: list[int]
    prompt_logprobs: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    computed: int = 0
    scored: int = 1
    routing: list[Sequence[Sequence[int]]] | None = None
    promised: int = 0
    in_flight: int = 0
    slot: int | None = None
    blocks: list[int] = field(default_factory=list)
    last_token_on_device: bool = False
    evicted: bool = False
    finish_reason: FinishReason | None = None
    error: str | None = None

    @classmethod
    def start(
        cls, request: Request, eos_token_ids: frozenset[int], text_stream: TextStream | None = None
    ) -> RequestState:
        """Return the state of a request that has just been queued; one with stop strings needs a `text_stream`."""
        ends = request.sampling.stop_token_ids
        if not request.sampling.ignore_eos:
            ends = ends | eos_token_ids
        stop_strings = None
        if request.sampling.stop_strings:
            assert text_stream is not None, "stop strings are looked for in a text"
            stop_strings = StopStringWatch(request.sampling.stop_strings, text_stream)
        return cls(
            request=request,
            seed=request.seed,
            end_token_ids=ends,
            stop_strings=stop_strings,
            token_ids=list(request.prompt_token_ids),
        )

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
        stops = self.stop_strings is not None and self.stop_strings.add(sample.token_id)
        if stops or sample.token_id in self.end_token_ids:
            self.finish_reason = FinishReason.STOP
        elif len(self.samples) == self.request.sampling.max_new_tokens:
            self.finish_reason = FinishReason.LENGTH
        return self.finished

    def record_routing(self, start: int, rows: Sequence[Sequence[Sequence[int]]]) -> None:
        """Take the expert ids of tokens from position `start` on; those computed again take their old places."""
        assert self.routing is not None, "routing is recorded from the start or not at all"
        assert start <= len(self.routing), "tokens are computed in order"
        self.routing[start : start + len(rows)] = rows

    def complete_without_tokens(self) -> None:
        """End a request of no new tokens whose prompt has been computed."""
        assert not self.finished, "a request ends once"
        assert self.request.sampling.max_new_tokens == 0, "only such a request ends without a sample"
        self.finish_reason = FinishReason.LENGTH

    def output(self) -> RequestOutput:
        """Return what the caller gets of a finished request."""
        assert self.finish_reason is not None, "only a finished request has an output"
        if self.error is not None:
            return RequestOutput.failed(self.request, self.error)
        sampling = self.request.sampling
        rows = max(len(self.token_ids) - 1, 0)
        return RequestOutput(
            request_id=self.request.request_id,
            prompt_token_ids=self.request.prompt_token_ids,
            generated_token_ids=tuple(sample.token_id for sample in self.samples),
            finish_reason=self.finish_reason,
            error=None,
            generated_logprobs=tuple(sample.logprob for sample in self.samples) if sampling.logprobs else None,
            margins=tuple(sample.margin for sample in self.samples),
            prompt_logprobs=tuple(self.prompt_logprobs) if sampling.prompt_logprobs else None,
            top_n_logprobs=tuple(sample.top for sample in self.samples) if sampling.top_n else None,
            stop_string_at=self.stop_strings.found_at if self.stop_strings else None,
            routing_indices=None if self.routing is None else tuple(self.routing[:rows]),
        )
