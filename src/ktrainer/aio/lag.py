"""Event-loop lag: how late the loop is in running what is due.

A task of the loop leaves heartbeats; whoever reads them, from whatever thread, sees for how long the next is overdue.
A thread watches too, and tells where the loop hangs while it still hangs. Time that the machine was suspended counts
as lag.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock

_log = structlog.get_logger(__name__)

BEAT_SECONDS = 0.25
"""The time between two heartbeats, and the finest lag that the watching thread can see."""

WARN_SECONDS = 1.0
"""A lag from which on the watching thread reports where the loop hangs."""


class LagMonitor:
    """Measures the lag of the loop that executes `run`. The readings may be taken from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_at: float | None = None
        """When the next heartbeat is due; None while `run` is not running."""
        self._max_seconds = 0.0
        """The longest lag since `take_max` was last called."""

    def lag_seconds(self) -> float:
        """Return how long the next heartbeat is overdue; 0 while the loop keeps up or is not measured."""
        due_at = self._due_at
        return 0.0 if due_at is None else max(0.0, self._clock.monotonic() - due_at)

    def take_max(self) -> float:
        """Return the longest lag since the last call, the present one included."""
        longest, self._max_seconds = self._max_seconds, 0.0
        return max(longest, self.lag_seconds())

    async def run(self) -> None:
        """Beat until cancelled."""
        ended = threading.Event()
        watcher = threading.Thread(
            target=self._watch, args=(threading.get_ident(), ended), name="event-loop-lag", daemon=True
        )
        watcher.start()
        try:
            while True:
                self._due_at = self._clock.monotonic() + BEAT_SECONDS
                await asyncio.sleep(BEAT_SECONDS)
                self._max_seconds = max(self._max_seconds, self.lag_seconds())
        finally:
            self._due_at = None
            ended.set()

    def _watch(self, loop_thread: int, ended: threading.Event) -> None:
        has_warned = False
        while not ended.wait(BEAT_SECONDS):
            is_late = self.lag_seconds() >= WARN_SECONDS
            if is_late and not has_warned:
                stack = "".join(traceback.format_stack(sys._current_frames().get(loop_thread)))
                _log.warning("event loop is blocked", lag_seconds=self.lag_seconds(), stack=stack)
            has_warned = is_late
