"""Limits the rate of requests on our side, one budget for each kind of resource.

A kind that is busy never slows down another. Watches and leases do not come here at all.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ktrainer.aio.bucket import TokenBucket

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.kube.identity import GroupKind

NOTABLE_SECONDS = 0.05
"""A longer wait is logged at debug level."""

LONG_SECONDS = 1.0
"""A longer wait is logged at info level."""

_log = structlog.get_logger(__name__)


class Throttle:
    """At most `burst` requests of a kind at once, and `qps` a second on average; a `qps` of 0 or less is no limit."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._buckets: dict[GroupKind, TokenBucket] = {}
        """Made at first use; as many as there are kinds that we talk about."""

    async def wait(self, kind: GroupKind) -> float:
        """Wait until a request for this kind may leave; return the seconds that it took."""
        if self._qps <= 0:
            return 0.0
        bucket = self._buckets.get(kind)
        if bucket is None:
            bucket = self._buckets[kind] = TokenBucket(self._qps, self._burst, self._clock)
        seconds = bucket.reserve()
        if seconds > 0:
            if seconds > LONG_SECONDS:
                _log.info("waiting for the client's rate limit", kind=str(kind), seconds=round(seconds, 3))
            elif seconds > NOTABLE_SECONDS:
                _log.debug("waiting for the client's rate limit", kind=str(kind), seconds=round(seconds, 3))
            await asyncio.sleep(seconds)
        return seconds
