"""A token bucket: at most `burst` at once, and `rate` per second on average.

Only says how long to wait; waiting is the caller's, so the class needs no event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock


class TokenBucket:
    """A bucket that starts full. Plain and atomic; reservations are served in the order in which they are made.

    Whoever waits as long as he is told to keeps the promise: no more than `burst + rate * t` pass in any t seconds.
    """

    def __init__(self, rate: float, burst: int, clock: Clock) -> None:
        if rate <= 0 or burst < 1:
            raise ValueError(f"a bucket of rate {rate} and burst {burst} would let nobody pass")
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        """Tokens in hand as of `_filled_at`; below zero, they are owed to reservations that still wait."""
        self._filled_at = clock.monotonic()

    def reserve(self) -> float:
        """Take one token, and return the seconds to wait before using it; 0 means now.

        A token once taken is spent, even if the waiting is cancelled; but see `give_back`.
        """
        self._fill()
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def give_back(self) -> None:
        """Undo the latest reservation, whose time has not come; those before it are served as they were told to."""
        self._tokens += 1

    def take(self) -> bool:
        """Take one token if there is one, and return whether there was; for those who do not wait."""
        self._fill()
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _fill(self) -> None:
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
