"""How fast the workqueue is, with its metrics on."""

from __future__ import annotations

import asyncio
import random
import time

from prometheus_client import CollectorRegistry

from benchmarks.figure import Figure
from ktrainer.aio.clock import SystemClock
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.queue.metrics import QueueMetrics
from ktrainer.machinery.queue.ratelimiter import ExponentialLimiter
from ktrainer.machinery.queue.workqueue import WorkQueue

_KEYS = 1_000
_ROUNDS = 200


def measure() -> Figure:
    """Add, get and finish a thousand keys again and again."""
    return Figure("workqueue: add, get, done", asyncio.run(_cycles_per_second()), "/s", 80_000, is_more_better=True)


async def _cycles_per_second() -> float:
    clock = SystemClock()
    limiter = ExponentialLimiter[ObjectKey](random.Random(1))
    metrics = QueueMetrics(CollectorRegistry(), clock)
    queue = WorkQueue[ObjectKey]("bench", limiter=limiter, clock=clock, metrics=metrics)
    keys = [ObjectKey("default", f"key-{number}") for number in range(_KEYS)]
    began = time.perf_counter()
    for _ in range(_ROUNDS):
        for key in keys:
            queue.add(key)
        for _ in keys:
            item = await queue.get()
            queue.done(item.key)
    return _KEYS * _ROUNDS / (time.perf_counter() - began)
