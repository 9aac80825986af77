"""Where the code reads the time; waiting stays with the event loop.

Durations come from `monotonic`, and only from it: the wall clock may jump. `now` is for timestamps that others read.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of time, passed to whatever needs it so that tests can replace it."""

    def monotonic(self) -> float:
        """Return seconds since some fixed point; never goes back, and counts the time the machine was suspended."""
        ...

    def now(self) -> datetime:
        """Return the wall-clock time, aware and in UTC."""
        ...


class SystemClock:
    """The clock of the machine."""

    def monotonic(self) -> float:
        """Return CLOCK_BOOTTIME where the system has it: a lease goes on expiring while we are suspended."""
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()  # pragma: no cover - not Linux

    def now(self) -> datetime:
        """Return the wall-clock time, aware and in UTC."""
        return datetime.now(UTC)
