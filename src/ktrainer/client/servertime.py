"""What time it is on the API server, learned from the Date headers of its answers.

Deadlines compare timestamps that the server wrote, so they are judged by its clock. Ours may be wrong, and may jump:
once an answer has been seen, only the monotonic clock is used.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock

SAMPLES = 15
"""How many answers count, at most one a second: enough to outvote a server or proxy whose clock is off."""


class ServerTime:
    """The server's clock, right to about a second. Plain and atomic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._offsets: deque[float] = deque(maxlen=SAMPLES)
        """Seconds from our monotonic clock to the server's Unix time, the latest last."""
        self._offset: float | None = None
        """The median of `_offsets`; None before the first answer."""
        self._last_date = ""
        """The header that was sampled last: most answers of the same second are skipped by a comparison of strings."""

    def now(self) -> datetime:
        """The server's time, aware and in UTC; our own where no answer has told yet."""
        if self._offset is None:
            return self._clock.now()
        return datetime.fromtimestamp(self._offset + self._clock.monotonic(), UTC)

    @property
    def skew(self) -> timedelta:
        """How far the server's clock is ahead of ours."""
        return self.now() - self._clock.now()

    def observe(self, date: str, sent_at: float, received_at: float) -> None:
        """Learn from a Date header of an answer, given the monotonic times of the request; nonsense is ignored."""
        if date == self._last_date:
            return
        self._last_date = date
        try:
            seconds = parsedate_to_datetime(date).timestamp()
        except (ValueError, OverflowError):
            return
        # The header has whole seconds, cut off: on average it is half a second old.
        self._offsets.append(seconds + 0.5 - (sent_at + received_at) / 2)
        self._offset = median(self._offsets)
