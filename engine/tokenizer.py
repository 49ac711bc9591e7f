"""Text to token ids and back, by the model's own `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as HuggingFaceTokenizer
from tokenizers.decoders import DecodeStream

from engine.model.families import ModelError


class TokenStream:
    """Turns one request's tokens into text piece by piece; a piece may be empty while a character is incomplete."""

    def __init__(self, tokenizer: HuggingFaceTokenizer) -> None:
        """Start before the first token."""
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)

    def add(self, token_id: int) -> str:
        """Return the text that the next token completes."""
        return self._stream.step(self._tokenizer, token_id) or ""


class Tokenizer:
    """A tokenizer of a model directory."""

    def __init__(self, model_dir: Path) -> None:
        """Read `tokenizer.json`.

        Raises:
            ModelError: if it is missing or cannot be read.
        """
        path = model_dir / "tokenizer.json"
        if not path.is_file():
            raise ModelError(f"{path}: there is no tokenizer.json; the engine reads no other tokenizer format")
        try:
            self._tokenizer = HuggingFaceTokenizer.from_file(str(path))
        except Exception as error:
            raise ModelError(f"{path}: not a tokenizer that can be read: {error}") from error

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`, with the special tokens that the tokenizer itself adds."""
        return list(self._tokenizer.encode(text).ids)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of the token ids, special tokens left out."""
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def stream(self) -> TokenStream:
        """Return a decoder for the tokens of one request as they come."""
        return TokenStream(self._tokenizer)
