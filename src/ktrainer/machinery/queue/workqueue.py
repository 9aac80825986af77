"""The queue between informers and workers: it holds keys, not changes, and gives a key to one worker at a time.

A key that is added many times before its turn gets one turn; one that is added during its turn gets exactly one more.
Higher priorities go first, and within a priority the key that has been ready longest. Everything but `get` and `drain`
is a plain function and therefore atomic; all of it belongs to the thread of the event loop.

Departs: shutting down drops what is queued. Keys are level-based, and the next leader lists everything anew.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Generic, NamedTuple

from ktrainer.machinery.queue.delays import Delays
from ktrainer.machinery.queue.ratelimiter import K

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.queue.metrics import QueueMetrics
    from ktrainer.machinery.queue.ratelimiter import RateLimiter

LOW_PRIORITY = -100
"""For keys that nobody waits for, such as those of the initial list and of resyncs."""

HIGH_PRIORITY = 100
"""For keys of what others wait for, and what is done in a moment."""

_MAX_STALE = 64
"""The heap may hold as many stale entries as valid ones, and this many more, before it is swept."""


class ShutDown(Exception):
    """The queue has been shut down: there is no further key."""


class Item(NamedTuple, Generic[K]):
    """A key whose turn it is, with the priority that it had in the queue."""

    key: K
    priority: int


class _Entry(NamedTuple, Generic[K]):
    """A place in the queue. Sorts by priority, then by arrival; keys themselves are never compared."""

    negated_priority: int
    sequence: int
    key: K
    ready_at: float


class WorkQueue(Generic[K]):
    """A deduplicating priority queue with delays and rate-limited retries.

    A key waits in one place at most: it is either ready or delayed, with the highest priority and the earliest time
    that were asked for. Whether it is in processing is independent of that.
    """

    def __init__(self, name: str, *, limiter: RateLimiter[K], clock: Clock, metrics: QueueMetrics) -> None:
        self._limiter = limiter
        self._clock = clock
        self._ready: dict[K, _Entry[K]] = {}
        """Every key that wants a turn now, canonical; a key in processing gets into the heap only when it is done."""
        self._heap: list[_Entry[K]] = []
        """The order of turns. An entry counts only while it is the very one in `_ready`."""
        self._sequence = 0
        self._delays = Delays[K](clock, self._make_ready)
        """Keys that want a turn later; none of them is in `_ready`."""
        self._processing: dict[K, float] = {}
        """Keys handed out and not yet done, with the time of handing out."""
        self._waiters: deque[asyncio.Future[None]] = deque()
        """Calls of `get` that found nothing. A waiter is told to look again and never given a key: it may have left."""
        self.is_attended = False
        """Whether anybody has asked for a key, ever."""
        self._is_shut_down = False
        """Once true, nothing is ready or delayed any more."""
        self._idle = asyncio.Event()
        """Set when the queue is shut down and nothing is in processing."""
        self._record = metrics.record(name, self)

    def add(self, key: K, *, priority: int = 0) -> None:
        """Give the key a turn; does nothing after `shut_down`."""
        if self._is_shut_down:
            return
        delay = self._delays.pop(key)
        self._make_ready(key, priority if delay is None else max(priority, delay.priority))

    def add_after(self, key: K, seconds: float, *, priority: int = 0) -> None:
        """Give the key a turn in so many seconds, unless it gets one sooner anyway; does nothing after `shut_down`."""
        if self._is_shut_down:
            return
        if seconds <= 0:
            self.add(key, priority=priority)
            return
        self._record.retries += 1
        if key in self._ready:
            self._make_ready(key, priority)
        else:
            self._delays.put(key, seconds, priority)

    def add_rate_limited(self, key: K, *, priority: int = 0, at_least_seconds: float = 0.0) -> None:
        """Count a failure of the key, and give it a turn after the delay that its failures demand, or a longer one."""
        self.add_after(key, max(self._limiter.when(key), at_least_seconds), priority=priority)

    def discard(self, key: K) -> None:
        """Take the key out again, whether it is ready or delayed; a turn that has begun goes on."""
        self._ready.pop(key, None)
        self._delays.pop(key)

    def forget(self, key: K) -> None:
        """Forget the failures of the key; it stays where it is in the queue."""
        self._limiter.forget(key)

    def num_requeues(self, key: K) -> int:
        """Return how many failures of the key were counted since it was last forgotten."""
        return self._limiter.num_requeues(key)

    async def get(self) -> Item[K]:
        """Wait for a key and hand it out; the caller must call `done` for it, whatever happens.

        Does not give way to other tasks when a key is ready. Raises ShutDown once the queue is shut down. Cancelling it
        loses no key, provided that the caller awaits it directly and not through a task of its own.
        """
        self.is_attended = True
        while not self._is_shut_down:
            while self._heap:
                entry = heappop(self._heap)
                if self._ready.get(entry.key) is entry:
                    return self._hand_out(entry)
            await self._wait()
        raise ShutDown

    def done(self, key: K) -> None:
        """Say that the turn of the key is over; call it once per `get`, after any decision to add the key again.

        Raises ValueError when the key is not in processing.
        """
        started_at = self._processing.pop(key, None)
        if started_at is None:
            raise ValueError(f"{key!r} is not in processing")
        self._record.worked.observe(self._clock.monotonic() - started_at)
        entry = self._ready.get(key)
        if entry is not None:
            self._line_up(key, -entry.negated_priority, entry.ready_at)
        elif self._is_shut_down and not self._processing:
            self._idle.set()

    def shut_down(self) -> None:
        """Drop what waits, take no more, and let every `get` raise ShutDown; keys in processing may still be done."""
        self._is_shut_down = True
        self._ready.clear()
        self._heap.clear()
        self._delays.clear()
        while self._waiters:
            self._wake_waiter()
        if not self._processing:
            self._idle.set()

    async def drain(self) -> None:
        """Shut down, and wait until no key is in processing."""
        self.shut_down()
        await self._idle.wait()

    def depth(self) -> Mapping[int, int]:
        """Return how many keys want a turn now, by priority."""
        return Counter(-entry.negated_priority for entry in self._ready.values())

    def running_since(self) -> Collection[float]:
        """Return the monotonic times at which the keys in processing were handed out."""
        return self._processing.values()

    def _make_ready(self, key: K, priority: int) -> None:
        entry = self._ready.get(key)
        if entry is None:
            self._record.adds += 1
            self._line_up(key, priority, self._clock.monotonic())
        elif priority > -entry.negated_priority:
            self._line_up(key, priority, entry.ready_at)

    def _line_up(self, key: K, priority: int, ready_at: float) -> None:
        """Put the key at the end of its priority; while it is in processing, just note that it wants another turn."""
        self._sequence += 1
        entry = self._ready[key] = _Entry(-priority, self._sequence, key, ready_at)
        if key in self._processing:
            return
        heappush(self._heap, entry)
        if len(self._heap) > 2 * len(self._ready) + _MAX_STALE:
            self._heap = [entry for entry in self._heap if self._ready.get(entry.key) is entry]
            heapify(self._heap)
        self._wake_waiter()

    def _hand_out(self, entry: _Entry[K]) -> Item[K]:
        now = self._clock.monotonic()
        del self._ready[entry.key]
        self._processing[entry.key] = now
        self._record.queued.observe(now - entry.ready_at)
        return Item(entry.key, -entry.negated_priority)

    async def _wait(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except BaseException:
            with contextlib.suppress(ValueError):
                self._waiters.remove(waiter)
            # If we had been told of a key, somebody else has to hear of it now.
            if self._heap:
                self._wake_waiter()
            raise

    def _wake_waiter(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
