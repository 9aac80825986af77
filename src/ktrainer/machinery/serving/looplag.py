"""The health of the event loop: what probes and metrics learn of its lag, and the end of a process whose loop hangs.

While the loop hangs nothing answers probes, so they fail by themselves, and a kubelet restarts the process. Where
nobody probes, a thread ends it. Time that the whole process stood still, such as in a suspended laptop, is a lag for
the health check, but no reason to end: the thread stood still as well.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import structlog
from prometheus_client import Histogram

from ktrainer.machinery.serving.health import Unhealthy

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ktrainer.aio.lag import LagMonitor
    from ktrainer.aio.signals import Terminator

_log = structlog.get_logger(__name__)

LIMIT_SECONDS = 10.0
"""A lag above this is unhealthy; it is the renew deadline of a leader, too."""

HANG_SECONDS = 60
"""A loop that was late for so long without a break is taken for lost. Kubelets are faster, if there is one."""

LATE_SECONDS = 2.0
"""From this lag on the loop counts as late."""

SAMPLE_SECONDS = 1.0

_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0)


class LoopLag:
    """Watches one `LagMonitor`, which it runs."""

    def __init__(self, monitor: LagMonitor, registry: CollectorRegistry, terminator: Terminator) -> None:
        self._monitor = monitor
        self._terminator = terminator
        self._histogram = Histogram(
            "ktrainer_event_loop_lag_seconds",
            "The longest lag of the event loop in each second.",
            buckets=_BUCKETS,
            registry=registry,
        )
        self._since_check = 0.0
        """The longest lag since the last check, in seconds."""
        self._since_sample = 0.0
        """The longest lag since the last sample, in seconds."""
        self._late_polls = 0
        """How often in a row the thread found the loop late."""

    def check(self) -> None:
        """Raise Unhealthy when the loop was late beyond measure since the last check."""
        self._measure()
        longest, self._since_check = self._since_check, 0.0
        if longest > LIMIT_SECONDS:
            raise Unhealthy(f"the event loop stood still for {longest:.1f} s")

    async def run(self) -> None:
        """Measure until cancelled."""
        ended = threading.Event()
        guard = threading.Thread(target=self._guard, args=(ended,), name="event-loop-guard", daemon=True)
        guard.start()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._monitor.run(), name="event-loop-lag")
                tasks.create_task(self._sample(), name="event-loop-lag-samples")
        finally:
            ended.set()

    async def _sample(self) -> None:
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            self._measure()
            self._histogram.observe(self._since_sample)
            self._since_sample = 0.0

    def _measure(self) -> None:
        seconds = self._monitor.take_max()
        self._since_check = max(self._since_check, seconds)
        self._since_sample = max(self._since_sample, seconds)

    def _guard(self, ended: threading.Event) -> None:
        while not ended.wait(1.0):
            self.poll()

    def poll(self) -> None:
        """Called by the thread once a second: end the process if the loop hangs for good."""
        self._late_polls = self._late_polls + 1 if self._monitor.lag_seconds() >= LATE_SECONDS else 0
        if self._late_polls >= HANG_SECONDS:
            _log.critical("the event loop hangs; the process ends", lag_seconds=self._monitor.lag_seconds())
            self._terminator.exit_now()
