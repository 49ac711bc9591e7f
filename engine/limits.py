"""Which requests can ever run. One that cannot fails alone, with its reason; the others go on. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from engine.config import InferenceConfig
from engine.request import Request
from engine.routing import Recording


@dataclass(frozen=True, slots=True)
class Limits:
    """What the model and the settings allow a single request."""

    vocab_size: int
    max_sequence_length: int
    max_prompt_length: int | None
    num_blocks: int
    block_size_tokens: int
    recording: Recording | None = None

    @classmethod
    def of(
        cls,
        config: InferenceConfig,
        *,
        vocab_size: int,
        max_position_embeddings: int,
        recording: Recording | None = None,
    ) -> Limits:
        """Return the limits of a model run under `config`; the model's own length is never exceeded.

        `recording` is the routing that requests replay, if they do.
        """
        wanted = config.max_sequence_length or max_position_embeddings
        return cls(
            vocab_size=vocab_size,
            max_sequence_length=min(wanted, max_position_embeddings),
            max_prompt_length=None if config.enable_chunked_prefill else config.max_tokens,
            num_blocks=config.num_blocks,
            block_size_tokens=config.block_size_tokens,
            recording=recording,
        )

    def refusal(self, request: Request) -> str | None:
        """Return why the request can never run, or None if it can."""
        return (
            self._malformed(request)
            or self._too_large(len(request.prompt_token_ids), request.sampling.max_new_tokens)
            or (self.recording.refusal(request) if self.recording else None)
        )

    def outgrown(self, request: Request, length: int) -> str | None:
        """Return why a request of `length` tokens cannot go on although it has not ended, or None if it can."""
        return self.recording.outgrown(request, length) if self.recording else None

    def _malformed(self, request: Request) -> str | None:
        if not request.prompt_token_ids:
            return "the prompt is empty; give it at least one token"
        wrong = next((token for token in request.prompt_token_ids if not 0 <= token < self.vocab_size), None)
        if wrong is not None:
            return f"token id {wrong} is outside the vocabulary of {self.vocab_size} (0 to {self.vocab_size - 1})"
        if request.sampling.top_n > self.vocab_size:
            return f"top_n is {request.sampling.top_n}, but the vocabulary has {self.vocab_size} tokens; ask for fewer"
        return None

    def _too_large(self, prompt: int, new: int) -> str | None:
        if prompt + new > self.max_sequence_length:
            return (
                f"{prompt} prompt tokens and {new} new ones are {prompt + new}, over max_sequence_length "
                f"{self.max_sequence_length}"
            )
        if self.max_prompt_length is not None and prompt > self.max_prompt_length:
            return (
                f"the prompt's {prompt} tokens are over max_tokens {self.max_prompt_length}, the budget of one step; "
                f"raise max_tokens or set enable_chunked_prefill"
            )
        # The last new token is never fed back, so it needs no place in the cache.
        blocks = -(-(prompt + max(new - 1, 0)) // self.block_size_tokens)
        if blocks > self.num_blocks:
            return f"it needs {blocks} KV blocks, but num_blocks is {self.num_blocks}"
        return None
