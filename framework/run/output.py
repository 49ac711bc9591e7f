"""What an engine's process prints: the end of it is kept, within bounds, for the message of a failure."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import IO, Final

_KEPT_LINES: Final = 300
_SHOWN_LINES: Final = 60
_SHOWN_FRAMES: Final = 20
_SHOWN_STACK_LINES: Final = 160
_LONGEST_LINE: Final = 400
_DUMP_WITHIN_S: Final = 3.0
_DUMP_SETTLED_S: Final = 0.2
_POLL_S: Final = 0.02
_DUMP_BEGINS: Final = "(most recent call first):"
_FRAME: Final = '  File "'


class Output:
    """Reads a stream until its end in a thread of its own, whatever comes; `count` lines have come so far."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.count = 0
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._reader = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._reader.start()

    def wait(self, limit_s: float) -> None:
        """Wait for the end of the stream, but not for long."""
        self._reader.join(limit_s)

    def last_lines(self) -> str:
        """Return the last lines, each on a line of its own."""
        return _drawn(list(self._lines)[-_SHOWN_LINES:])

    def stacks(self, before: int) -> str:
        """Wait for the stacks of all threads, which were asked for when `before` lines had come, and return them.

        The lines just before them come too. Of a deep stack the frames nearest to the hang are kept.
        """
        deadline = time.monotonic() + _DUMP_WITHIN_S
        seen, since = before, time.monotonic()
        while time.monotonic() < deadline and self._reader.is_alive():
            if self.count != seen:
                seen, since = self.count, time.monotonic()
            has_begun = any(_DUMP_BEGINS in line for line in list(self._lines)[-max(seen - before, 0) :])
            if seen > before and has_begun and time.monotonic() - since > _DUMP_SETTLED_S:
                break
            time.sleep(_POLL_S)
        return _drawn(shortened_stacks(list(self._lines))[-_SHOWN_STACK_LINES:])

    def _read(self, stream: IO[bytes]) -> None:
        is_rest = False
        while line := stream.readline(_LONGEST_LINE):
            if not is_rest:
                self._lines.append(line.decode("utf-8", "replace").rstrip())
                self.count += 1
            is_rest = not line.endswith(b"\n")


def shortened_stacks(lines: list[str]) -> list[str]:
    """Return lines in which no run of stack frames is longer than what helps; the first of each are the innermost."""
    kept: list[str] = []
    frames = 0
    for line in [*lines, ""]:
        is_frame = line.startswith(_FRAME)
        if not is_frame and frames > _SHOWN_FRAMES:
            kept.append(f"  … and {frames - _SHOWN_FRAMES} more frames")
        frames = frames + 1 if is_frame else 0
        if frames <= _SHOWN_FRAMES:
            kept.append(line)
    return kept[:-1]


def _drawn(lines: list[str]) -> str:
    return "".join(f"\n    | {line}" for line in lines)
