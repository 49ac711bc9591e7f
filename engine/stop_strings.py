"""Finds stop strings in a text that comes piece by piece, wherever tokens begin and end. No torch here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class TextStream(Protocol):
    """Turns the tokens of one request into text as they come."""

    def add(self, token_id: int) -> str:
        """Return the text that the next token completes; it is empty while a character is incomplete."""
        ...


class StopStringSearch:
    """Takes a text in pieces, looks for the first place where a stop string begins, and holds back what may be one.

    The search ends with the first piece that completes a stop string. Of several that are there by then, the one that
    begins first counts.
    """

    def __init__(self, stop_strings: Sequence[str]) -> None:
        """Start before the first piece; without stop strings nothing is ever found or held back."""
        self.found_at: int | None = None
        self._stop_strings = tuple(stop_strings)
        self._held = ""  # the longest end of the text that could begin a stop string
        self._passed = 0  # characters before it

    def add(self, piece: str) -> str:
        """Take more text and return what is certain to stand before any stop string."""
        assert self.found_at is None, "a text is searched until a stop string is found"
        text = self._held + piece
        places = [place for stop in self._stop_strings if (place := text.find(stop)) >= 0]
        end = min(places) if places else len(text) - self._possible_beginning(text)
        if places:
            self.found_at = self._passed + end
        self._passed += end
        self._held = text[end:]
        return text[:end]

    def rest(self) -> str:
        """Return what is still held back of a text that has ended: nothing if a stop string was found."""
        return self._held if self.found_at is None else ""

    def _possible_beginning(self, text: str) -> int:
        """Return the length of the longest end of `text` with which a stop string begins."""
        longest = min(max(map(len, self._stop_strings), default=1) - 1, len(text))
        ends = range(longest, 0, -1)
        return next((length for length in ends if any(s.startswith(text[-length:]) for s in self._stop_strings)), 0)


class StopStringWatch:
    """Looks for the stop strings of one request in the text of its tokens."""

    def __init__(self, stop_strings: Sequence[str], text_stream: TextStream) -> None:
        """Start before the first generated token."""
        self._search = StopStringSearch(stop_strings)
        self._text_stream = text_stream

    @property
    def found_at(self) -> int | None:
        """The character of the text at which the stop string begins that was found."""
        return self._search.found_at

    def add(self, token_id: int) -> bool:
        """Take the next token and return whether it completes a stop string."""
        self._search.add(self._text_stream.add(token_id))
        return self.found_at is not None
