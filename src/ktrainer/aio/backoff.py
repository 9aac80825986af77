"""How long a loop that failed waits before it tries again.

For loops that serve one purpose, such as list and watch. How often single keys are retried is the business of the
workqueue's rate limiter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from ktrainer.aio.clock import Clock


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """The figures of a `Backoff`; the defaults are those of a list/watch loop, whose steady state is 30 to 60 s."""

    initial_seconds: float = 0.8
    """The first delay, before jitter."""

    factor: float = 2.0
    """What each delay is multiplied with to give the next."""

    cap_seconds: float = 30.0
    """The longest delay, before jitter."""

    jitter: float = 1.0
    """A delay d is drawn uniformly from [d, d * (1 + jitter)), so that many clients do not return at once."""

    reset_after_seconds: float = 120.0
    """A failure that comes so long after the one before is the first of a new series."""


class Backoff:
    """The delays of one loop, growing from failure to failure. Plain and atomic; the caller does the waiting."""

    def __init__(self, policy: BackoffPolicy, clock: Clock, random: Random) -> None:
        self._policy = policy
        self._clock = clock
        self._random = random
        self._next_seconds = policy.initial_seconds
        """The next delay, before jitter; never above the cap."""
        self._failed_at: float | None = None
        """When `next_delay` was last called; None after a reset."""

    def next_delay(self) -> float:
        """Return how many seconds to wait after the failure that has just happened."""
        now = self._clock.monotonic()
        if self._failed_at is not None and now - self._failed_at > self._policy.reset_after_seconds:
            self.reset()
        self._failed_at = now
        seconds = self._next_seconds
        self._next_seconds = min(seconds * self._policy.factor, self._policy.cap_seconds)
        return seconds * (1 + self._policy.jitter * self._random.random())

    def reset(self) -> None:
        """Begin a new series: the next delay is the initial one."""
        self._next_seconds = self._policy.initial_seconds
        self._failed_at = None
