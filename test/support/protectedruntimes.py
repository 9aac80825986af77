"""A model cluster of TrainJobs and one kind of runtimes, and who protects them, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
from random import Random
from typing import TYPE_CHECKING

import orjson
from prometheus_client import CollectorRegistry

from ktrainer.api.labels import RUNTIME_IN_USE
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINJOBS
from ktrainer.controllers.protection.reconciler import RuntimeProtector
from ktrainer.controllers.protection.usage import Usage
from ktrainer.kube.errors import Conflict, NotFound
from ktrainer.kube.identity import ObjectKey
from ktrainer.kube.patches import merge_apply
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.control.reconcile import Stale
from ktrainer.machinery.queue.metrics import QueueMetrics
from ktrainer.machinery.queue.ratelimiter import ExponentialLimiter
from ktrainer.machinery.queue.workqueue import WorkQueue
from support.informers import build_cache, running
from support.modelserver import ModelServer
from support.virtualtime import VirtualClock, settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ktrainer.client.patchtype import PatchType
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject

TORCH = ObjectKey("", "torch")
FINISHED = {"conditions": [{"type": "Failed", "status": "True"}]}


class RuntimeServer(ModelServer):
    """A server whose objects can be patched, and go when they are deleted and have no finalizer any more."""

    before_patch: Callable[[], None] = staticmethod(lambda: None)
    patches: list[JsonObject]

    async def patch(
        self, resource: Resource, key: ObjectKey, body: bytes, patch_type: PatchType, *, field_manager: str
    ) -> bytes:
        self.before_patch()
        change = orjson.loads(body)
        self.patches.append(change)
        current = self.objects.get(key)
        if current is None:
            raise NotFound(404, "NotFound", "it is not there")
        if change["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "it has changed")
        new = merge_apply(change, current)
        is_gone = "deletionTimestamp" in new["metadata"] and not new["metadata"]["finalizers"]
        self.write(key, None if is_gone else new)
        return orjson.dumps(new)

    def ask_to_delete(self, key: ObjectKey) -> None:
        self.update(key, metadata={"deletionTimestamp": "2026-01-02T03:04:05Z"})

    def finalizers(self, key: ObjectKey = TORCH) -> list[str] | None:
        """The finalizers of a runtime; None where it is gone."""
        return list(self.objects[key]["metadata"].get("finalizers", [])) if key in self.objects else None


class Bench:
    """The cluster, and the queue of keys that wait for a turn."""

    def __init__(self, resource: Resource, *, is_on: bool) -> None:
        self.trainjobs = ModelServer(TRAINJOBS)
        self.runtimes = RuntimeServer(resource)
        self.runtimes.patches = []
        self.job_cache = build_cache(self.trainjobs)
        self.runtime_cache = build_cache(self.runtimes)
        jobs = self.job_cache.register(View(TRAINJOBS, CachedObject))
        runtimes = self.runtime_cache.register(View(resource, CachedObject))
        usage = Usage(jobs, self.trainjobs) if is_on else None
        self.protector = RuntimeProtector(runtimes, usage, self.runtimes)
        clock = VirtualClock()
        limiter, metrics = ExponentialLimiter[ObjectKey](Random(0)), QueueMetrics(CollectorRegistry(), clock)
        self.queue = WorkQueue[ObjectKey]("test", limiter=limiter, clock=clock, metrics=metrics)
        self.protector.wake(self.queue, jobs)
        self.turns = 0

    def create_job(self, name: str = "job", namespace: str = "team-a", /, **ref: str) -> ObjectKey:
        """A TrainJob that refers to the runtime torch."""
        return self.trainjobs.create(name, namespace, spec={"runtimeRef": {"name": "torch", **ref}, "n": 0})

    def finish(self, key: ObjectKey) -> None:
        spec = self.trainjobs.objects[key]["spec"]
        self.trainjobs.update(key, spec=spec, status=FINISHED)

    async def work_with_lag(self, happen: Callable[[], object]) -> None:
        """Do the same, while something happens of which the cache hears only afterwards."""
        await settle()
        streams = list(self.trainjobs.streams)
        self.trainjobs.streams.clear()
        happen()
        self.trainjobs.streams.extend(streams)
        await self.work()
        self.trainjobs.cut()
        # The informer waits a little before it watches anew.
        await asyncio.sleep(10)

    async def work(self) -> None:
        """Give all keys their turns until none is left."""
        await settle()
        while self.queue.depth():
            key = (await self.queue.get()).key
            self.turns += 1
            try:
                await self.protector.reconcile(key)
            except Stale:
                self.queue.add(key)
            self.queue.done(key)
            await settle()


@contextlib.asynccontextmanager
async def protecting(
    resource: Resource = CLUSTER_TRAINING_RUNTIMES,
    *,
    is_on: bool = True,
    is_leading: bool = True,
    finalizers: tuple[str, ...] = (),
) -> AsyncIterator[Bench]:
    """A cluster with the runtime torch; who does not lead does nothing before `work`."""
    bench = Bench(resource, is_on=is_on)
    bench.runtimes.create("torch", "team-a", metadata={"finalizers": list(finalizers)})
    async with running(bench.job_cache), running(bench.runtime_cache):
        await (bench.work() if is_leading else settle())
        yield bench


PROTECTED = [RUNTIME_IN_USE]
