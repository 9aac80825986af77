"""How often one client may call: whoever floods us gets no answer that costs anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.aio.bucket import TokenBucket

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock

RATE: Final = 5.0
"""Requests in a second from one address, in the long run: many pods of a node may have the node's address."""

BURST: Final = 20
"""Requests at once from one address."""

MAX_CALLERS: Final = 4096
"""Addresses that are remembered; beyond that the oldest are forgotten."""


class Callers:
    """Counts the requests of each address. Plain and atomic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._buckets: dict[str, TokenBucket] = {}
        """By address, those that called last at the end."""

    def admit(self, address: str) -> bool:
        """Whether a client at this address may have its request answered."""
        bucket = self._buckets.pop(address, None) or TokenBucket(RATE, BURST, self._clock)
        while len(self._buckets) >= MAX_CALLERS:
            del self._buckets[next(iter(self._buckets))]
        self._buckets[address] = bucket
        return bucket.take()
