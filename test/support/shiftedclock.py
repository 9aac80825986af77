"""A clock that can be set: for faults of time, such as a machine that was suspended or whose clock was wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from ktrainer.aio.clock import Clock


class ShiftedClock:
    """Another clock plus what the test adds to it; implements `Clock`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.monotonic_seconds = 0.0
        """Seconds that seem to have passed unnoticed, as in a suspended machine."""
        self.wall_seconds = 0.0
        """Seconds by which the wall clock is wrong."""

    def monotonic(self) -> float:
        """Return the shifted monotonic time."""
        return self._clock.monotonic() + self.monotonic_seconds

    def now(self) -> datetime:
        """Return the shifted wall time."""
        return self._clock.now() + timedelta(seconds=self.wall_seconds)
