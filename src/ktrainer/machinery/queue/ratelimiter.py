"""How long a key that failed waits for its next turn.

Only counts and computes: the waiting is done by the workqueue. There is no limit over all keys together: the client's
throttle protects the server, and a hundred failing keys must not slow down a healthy one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Hashable
    from random import Random

K = TypeVar("K", bound="Hashable")
K_contra = TypeVar("K_contra", bound="Hashable", contravariant=True)

BASE_SECONDS = 0.005
"""The delay after the first failure."""

CAP_SECONDS = 300.0
"""The longest delay, before jitter. Departs: upstream goes up to 1000 s, so that a mended fault may go unnoticed for a
quarter of an hour."""

JITTER = 0.1
"""A delay d is drawn from [d * (1 - JITTER), d * (1 + JITTER)]. Departs: upstream has no jitter, so that keys which
failed together go on failing together."""

_MAX_DOUBLINGS = 32
"""More are never needed to reach the cap, and the power stays far from overflow."""


class RateLimiter(Protocol[K_contra]):
    """What a workqueue asks how long to hold back a key."""

    def when(self, key: K_contra) -> float:
        """Count a failure of the key and return the seconds to wait before its next turn."""
        ...

    def forget(self, key: K_contra) -> None:
        """Start again at zero for the key, which may be unknown."""
        ...

    def num_requeues(self, key: K_contra) -> int:
        """Return how many failures were counted since the key was last forgotten."""
        ...


class ExponentialLimiter(Generic[K]):
    """Doubles the delay of a key from failure to failure, whatever happens to other keys."""

    def __init__(self, random: Random, *, base_seconds: float = BASE_SECONDS, cap_seconds: float = CAP_SECONDS) -> None:
        self._random = random
        self._base_seconds = base_seconds
        self._cap_seconds = cap_seconds
        self._failures: dict[K, int] = {}
        """Failures since the last `forget`; a key without any has no entry."""

    def when(self, key: K) -> float:
        """Count a failure of the key and return the seconds to wait before its next turn."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        seconds = min(self._base_seconds * 2.0 ** min(failures, _MAX_DOUBLINGS), self._cap_seconds)
        return seconds * self._random.uniform(1 - JITTER, 1 + JITTER)

    def forget(self, key: K) -> None:
        """Start again at zero for the key, which may be unknown."""
        self._failures.pop(key, None)

    def num_requeues(self, key: K) -> int:
        """Return how many failures were counted since the key was last forgotten."""
        return self._failures.get(key, 0)
