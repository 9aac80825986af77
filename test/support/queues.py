"""Workqueues for tests: real ones, with a limiter of round figures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from ktrainer.machinery.queue.metrics import QueueMetrics
from ktrainer.machinery.queue.workqueue import WorkQueue

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock


class DoublingLimiter:
    """A `RateLimiter` without jitter: 1 s, 2 s, 4 s and so on up to 64 s."""

    def __init__(self) -> None:
        self.failures: dict[str, int] = {}

    def when(self, key: str) -> float:
        self.failures[key] = self.num_requeues(key) + 1
        return 2.0 ** min(self.failures[key] - 1, 6)

    def forget(self, key: str) -> None:
        self.failures.pop(key, None)

    def num_requeues(self, key: str) -> int:
        return self.failures.get(key, 0)


def build_queue(clock: Clock, registry: CollectorRegistry | None = None) -> WorkQueue[str]:
    """Return a new queue named "test"."""
    metrics = QueueMetrics(registry or CollectorRegistry(), clock)
    return WorkQueue("test", limiter=DoublingLimiter(), clock=clock, metrics=metrics)


async def get_ready(queue: WorkQueue[str]) -> list[str]:
    """Hand out all that is ready, and nothing that is not."""
    keys = []
    while queue.depth():
        try:
            async with asyncio.timeout(0):
                keys.append((await queue.get()).key)
        except TimeoutError:
            break
    return keys


async def turn(queue: WorkQueue[str]) -> str:
    """Wait for a key, and be done with it at once."""
    item = await queue.get()
    queue.done(item.key)
    return item.key
