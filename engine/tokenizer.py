"""Text to token ids and back, by the model's own `tokenizer.json`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as HuggingFaceTokenizer

from engine.model.families import ModelError
from engine.text_file import read_text_file

MAXIMUM_BYTES = 64_000_000

_INCOMPLETE = "\N{REPLACEMENT CHARACTER}"
_CONTEXT_TOKENS = 8
_LONGEST_WINDOW = 32


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
        self._path = path
        try:
            text = read_text_file(path, MAXIMUM_BYTES)
            self._tokenizer = _call(lambda: HuggingFaceTokenizer.from_str(text))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ModelError(f"{path}: not a tokenizer that can be read: {why}") from error
        # A file may ask for both; a prompt is what it is, neither cut nor filled up.
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def encode(self, text: str) -> list[int]:
        """Return the token ids of `text`, with the special tokens that the tokenizer itself adds.

        Raises:
            ModelError: the tokenizer's own rules fail on it.
        """
        try:
            return list(_call(lambda: self._tokenizer.encode(text).ids))
        except ValueError as error:
            raise ModelError(f"{self._path}: a text of {len(text)} characters cannot be encoded: {error}") from error

    def decode(self, token_ids: Sequence[int]) -> str:
        """Return the text of the token ids, special tokens left out.

        Raises:
            ModelError: the tokenizer's own rules fail on them.
        """
        try:
            return str(_call(lambda: self._tokenizer.decode(list(token_ids), skip_special_tokens=True)))
        except ValueError as error:
            raise ModelError(f"{self._path}: {len(token_ids)} tokens cannot be decoded: {error}") from error

    def stream(self) -> TokenStream:
        """Return a decoder for the tokens of one request as they come."""
        return TokenStream(self)


def _call(library: Callable[[], Any]) -> Any:
    """Call the library; what it raises, and a panic, which is no `Exception`, becomes a `ValueError`."""
    try:
        return library()
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


class TokenStream:
    """Turns one request's tokens into text piece by piece; a piece may be empty while a character is incomplete.

    The pieces together are the text of all tokens, but for an end that is no complete character. Only the latest tokens
    are decoded again with each new one.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Start before the first token."""
        self._tokenizer = tokenizer
        self._window: list[int] = []
        self._given = 0  # characters of the window's text

    def add(self, token_id: int) -> str:
        """Return the text that the next token completes."""
        self._window.append(token_id)
        text = self._tokenizer.decode(self._window)
        complete = text.rstrip(_INCOMPLETE)
        piece = complete[self._given :]
        self._given = max(self._given, len(complete))
        if text == complete and len(self._window) > _LONGEST_WINDOW:
            self._shorten(text)
        return piece

    def _shorten(self, text: str) -> None:
        """Forget the window's first tokens, unless the rest begins inside a character and reads as another text."""
        context = self._window[-_CONTEXT_TOKENS:]
        end_of_text = self._tokenizer.decode(context)
        if end_of_text and text.endswith(end_of_text):
            self._window, self._given = context, len(end_of_text)
