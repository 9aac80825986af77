"""A process that keeps an informer on TrainJobs and tells on standard output, as JSON, what that costs it.

Told by its standard input when to go on, it measures: the first sync, then the events of changes, then doing nothing.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import sys
import time
from pathlib import Path
from random import Random

import psutil
from prometheus_client import CollectorRegistry

from benchmarks.population import TRAINJOBS
from ktrainer.aio.clock import SystemClock
from ktrainer.client.config.config import load_config
from ktrainer.client.connect import connect
from ktrainer.machinery.cache.cache import Cache
from ktrainer.machinery.cache.metrics import CacheMetrics
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.cache.written import WrittenVersions


class _Counter:
    """A handler that counts."""

    def __init__(self) -> None:
        self.updates = 0
        self._wanted = 0
        self._reached = asyncio.Event()

    async def wait_for(self, updates: int) -> None:
        """Wait until so many updates have been counted."""
        self._wanted = updates
        if self.updates < updates:
            await self._reached.wait()

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        """Nothing to count."""

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Count an update."""
        self.updates += 1
        if self.updates == self._wanted:
            self._reached.set()

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        """Nothing to count."""


class _Pauses:
    """The longest full collection of the garbage collector."""

    def __init__(self) -> None:
        self.longest_seconds = 0.0
        self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2:
            return
        if phase == "start":
            self._began = time.perf_counter()
        else:
            self.longest_seconds = max(self.longest_seconds, time.perf_counter() - self._began)


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _tell(**figures: float) -> None:
    print(json.dumps(figures), flush=True)


async def _told(word: str) -> None:
    line = await asyncio.to_thread(sys.stdin.readline)
    if line.strip() != word:
        raise SystemExit(f"told {line!r} instead of {word!r}")


async def main(kubeconfig: Path) -> None:
    """Sync, tell, wait for changes, tell, idle, tell."""
    clock, registry, counter = SystemClock(), CollectorRegistry(), _Counter()
    connection = connect(
        load_config(kubeconfig, None), component="bench", clock=clock, registry=registry, qps=50, burst=100
    )
    written = WrittenVersions(registry, [])
    cache = Cache(
        connection.cache_client, clock=clock, random=Random(), metrics=CacheMetrics(registry, clock), written=written
    )
    informer = cache.register(View(TRAINJOBS, CachedObject))
    informer.add_handler(counter)
    gc.collect()
    gc.freeze()
    pauses, process = _Pauses(), psutil.Process()
    memory, cpu, began = process.memory_info().rss, _cpu_seconds(), time.perf_counter()
    running = asyncio.create_task(cache.run(), name="cache")
    await cache.wait_synced()
    seconds, cpu = time.perf_counter() - began, _cpu_seconds() - cpu
    gc.collect()
    count = len(informer.store)
    _tell(objects=count, seconds=seconds, cpu=cpu, bytes_each=(process.memory_info().rss - memory) / max(count, 1))

    cpu = _cpu_seconds()
    await _told("changed")
    await counter.wait_for(count)
    _tell(updates=counter.updates, cpu=_cpu_seconds() - cpu)

    cpu, began = _cpu_seconds(), time.perf_counter()
    await asyncio.sleep(15)
    idle = (_cpu_seconds() - cpu) / (time.perf_counter() - began)
    gc.collect()
    _tell(idle=idle, pause=pauses.longest_seconds)
    running.cancel()
    await asyncio.wait({running})
    await connection.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
