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


class _Lane:
    """The requests of one kind, which leave in the order in which they came.

    Only the first in line has a token reserved. Whoever gives up leaves nothing behind, and the others move up.
    """

    def __init__(self, bucket: TokenBucket) -> None:
        self._bucket = bucket
        self._turn = asyncio.Lock()
        self._length = 0
        """How many are in line."""

    def pass_by(self) -> bool:
        """Let the request leave at once if it can, and return whether that was so."""
        return self._length == 0 and self._bucket.take()

    async def wait(self) -> None:
        """Wait until the request may leave."""
        self._length += 1
        try:
            async with self._turn:
                await self._wait_for_token()
        finally:
            self._length -= 1

    async def _wait_for_token(self) -> None:
        seconds = self._bucket.reserve()
        try:
            await asyncio.sleep(seconds)
        except BaseException:
            self._bucket.give_back()
            raise


class Throttle:
    """At most `burst` requests of a kind at once, and `qps` a second on average; a `qps` of 0 or less is no limit."""

    def __init__(self, qps: float, burst: int, clock: Clock) -> None:
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._lanes: dict[GroupKind, _Lane] = {}
        """Made at first use; as many as there are kinds that we talk about."""

    async def wait(self, kind: GroupKind) -> float:
        """Wait until a request for this kind may leave; return the seconds that it took."""
        if self._qps <= 0:
            return 0.0
        lane = self._lanes.get(kind)
        if lane is None:
            lane = self._lanes[kind] = _Lane(TokenBucket(self._qps, self._burst, self._clock))
        if lane.pass_by():
            return 0.0
        began_at = self._clock.monotonic()
        try:
            await lane.wait()
        finally:
            seconds = self._clock.monotonic() - began_at
            _report(kind, seconds)
        return seconds


def _report(kind: GroupKind, seconds: float) -> None:
    if seconds > LONG_SECONDS:
        _log.info("waited for the client's rate limit", kind=str(kind), seconds=round(seconds, 3))
    elif seconds > NOTABLE_SECONDS:
        _log.debug("waited for the client's rate limit", kind=str(kind), seconds=round(seconds, 3))
