"""Keys that wait for their time: the delayed part of the workqueue.

One entry per key and one timer for all of them, however many there are; no task.
"""

from __future__ import annotations

import asyncio
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Generic, NamedTuple

from ktrainer.machinery.queue.ratelimiter import K

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.aio.clock import Clock

HEARTBEAT_SECONDS = 10.0
"""The clock is looked at after this time at the latest: while the machine is suspended it goes on, but timers stop."""

_TIMER_SLACK_SECONDS = 1e-6
"""A timer may fire early by a rounding error; what is due so soon is due."""

_MAX_STALE = 64
"""The heap may hold as many stale entries as valid ones, and this many more, before it is swept."""


class Delay(NamedTuple, Generic[K]):
    """A key that will be due. Sorts by time, then by arrival; keys themselves are never compared."""

    due_at: float
    sequence: int
    key: K
    priority: int


class Delays(Generic[K]):
    """Calls `due(key, priority)` for each key when its time has come, earlier times first. Plain and atomic."""

    def __init__(self, clock: Clock, due: Callable[[K, int], None]) -> None:
        self._clock = clock
        self._due = due
        self._delays: dict[K, Delay[K]] = {}
        """Every waiting key, canonical."""
        self._heap: list[Delay[K]] = []
        """The order of times. An entry counts only while it is the very one in `_delays`."""
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        """Set for the first entry of the heap or the heartbeat; None when the heap is empty."""
        self._timer_at = 0.0
        """When `_timer` fires, by our clock."""

    def put(self, key: K, seconds: float, priority: int) -> None:
        """Let the key wait so long; if it waits already, the earlier time and the higher priority count."""
        now = self._clock.monotonic()
        due_at = now + seconds
        former = self._delays.get(key)
        if former is not None:
            due_at = min(due_at, former.due_at)
            priority = max(priority, former.priority)
            if due_at == former.due_at and priority == former.priority:
                return
        self._sequence += 1
        delay = self._delays[key] = Delay(due_at, self._sequence, key, priority)
        heappush(self._heap, delay)
        if len(self._heap) > 2 * len(self._delays) + _MAX_STALE:
            self._heap = list(self._delays.values())
            heapify(self._heap)
        self._set_timer(now)

    def pop(self, key: K) -> Delay[K] | None:
        """Take the key out, and return how it waited; None when it did not."""
        return self._delays.pop(key, None)

    def clear(self) -> None:
        """Take all keys out and stop the timer."""
        self._delays.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, now: float) -> None:
        if not self._heap:
            return
        at = min(self._heap[0].due_at, now + HEARTBEAT_SECONDS)
        if self._timer is not None:
            if self._timer_at <= at:
                return
            self._timer.cancel()
        self._timer_at = at
        self._timer = asyncio.get_running_loop().call_later(at - now, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._heap and self._heap[0].due_at <= now + _TIMER_SLACK_SECONDS:
            delay = heappop(self._heap)
            if self._delays.get(delay.key) is delay:
                del self._delays[delay.key]
                self._due(delay.key, delay.priority)
        self._set_timer(now)
