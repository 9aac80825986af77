"""Cutting long work into slices, so that the event loop gets to everybody else in between.

Counted rather than timed: the same work is cut at the same places whatever the machine, and in virtual time too.
"""

from __future__ import annotations

SLICE_STEPS = 64
"""Small steps that make a slice; one takes some tens of microseconds."""

SLICE_BYTES = 512 * 1024
"""Bytes to decode that make a slice; decoding them takes about a millisecond."""


class Pace:
    """Tells one piece of work when to give way, which it does by `await asyncio.sleep(0)`."""

    __slots__ = ("_bytes", "_steps")

    def __init__(self) -> None:
        self._steps = 0
        self._bytes = 0

    def is_slice_over(self, size: int = 0) -> bool:
        """Count a step that took so many bytes; return whether a slice is full, of which the next then begins."""
        self._steps += 1
        self._bytes += size
        if self._steps < SLICE_STEPS and self._bytes < SLICE_BYTES:
            return False
        self._steps = self._bytes = 0
        return True
