"""A storm: TrainJobs created at once, their JobSets marked complete as they appear, until every TrainJob is Complete.

Beside it, the same writes by a client that does nothing else: what any manager needs at least.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from random import Random
from typing import TYPE_CHECKING, Any

import orjson
from prometheus_client import CollectorRegistry

from benchmarks.progress import Progress
from benchmarks.writing import AT_ONCE, connected, for_each
from controlplane.problem import Problem
from ktrainer.aio.clock import SystemClock
from ktrainer.api.resources import CONFIG_MAPS, JOBSETS, TRAINJOBS
from ktrainer.client.patchtype import PatchType
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.cache.cache import Cache
from ktrainer.machinery.cache.metrics import CacheMetrics
from ktrainer.machinery.cache.objects import CachedObject, decoded
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.cache.written import WrittenVersions

if TYPE_CHECKING:
    from pathlib import Path

    from ktrainer.client.client import Client

NAMESPACE = "default"
RUNTIME = "torch-distributed"
PATIENCE_SECONDS = 300.0
"""How long a storm may last once all TrainJobs are created."""


def trainjob(name: str) -> dict[str, Any]:
    """A TrainJob of two nodes."""
    trainer = {"image": "registry.example/trainer:1", "command": ["torchrun", "train.py"], "numNodes": 2}
    return {
        "apiVersion": TRAINJOBS.api_version,
        "kind": TRAINJOBS.kind,
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": RUNTIME}, "trainer": trainer},
    }


class _Completion:
    """Marks the JobSets of a storm complete as they appear, and notes its TrainJobs that are Complete."""

    def __init__(self, client: Client, prefix: str, wanted: int) -> None:
        self._client = client
        self._prefix = f"{prefix}-"
        self._wanted = wanted
        self._progress = Progress(wanted)
        self.complete: set[str] = set()
        self.jobsets: asyncio.Queue[ObjectKey] = asyncio.Queue()
        self._reached = asyncio.Event()

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        """Take note of an object that is there."""
        if obj.kind != JOBSETS.kind:
            self.on_update(obj, obj)
        elif obj.key.name.startswith(self._prefix):
            self.jobsets.put_nowait(obj.key)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Take note of the end of a TrainJob."""
        if new.kind == JOBSETS.kind or not new.key.name.startswith(self._prefix):
            return
        conditions = (decoded(new.status) or {}).get("conditions") or ()
        if any(each["type"] == "Complete" and each["status"] == "True" for each in conditions):
            self.complete.add(new.key.name)
            self._progress.reached(len(self.complete))
        if len(self.complete) == self._wanted:
            self._reached.set()

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        """Nothing is deleted here."""

    async def wait(self, seconds: float) -> None:
        """Wait until all are Complete, but not for ever."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._reached.wait()

    async def mark(self) -> None:
        """Mark one JobSet after the other, for ever."""
        while True:
            key = await self.jobsets.get()
            await self._client.patch(JOBSETS, key, _COMPLETED, PatchType.MERGE, subresource="status")


_COMPLETED = orjson.dumps(
    {
        "status": {
            "conditions": [
                {
                    "type": "Completed",
                    "status": "True",
                    "reason": "AllJobsCompleted",
                    "message": "jobset completed successfully",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }
            ],
            "terminalState": "Completed",
            "replicatedJobsStatus": [
                {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
            ],
        }
    }
)


async def storm_seconds(kubeconfig: Path, count: int, prefix: str) -> float:
    """How long a storm of so many TrainJobs takes."""
    # Users and the JobSet controller are two programs: neither waits for a connection of the other.
    async with connected(kubeconfig) as user, connected(kubeconfig) as client:
        clock, registry = SystemClock(), CollectorRegistry()
        cache = Cache(
            client,
            clock=clock,
            random=Random(),
            metrics=CacheMetrics(registry, clock),
            written=WrittenVersions(registry, []),
        )
        completion = _Completion(client, prefix, count)
        for resource in (JOBSETS, TRAINJOBS):
            cache.register(View(resource, CachedObject)).add_handler(completion)
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(cache.run(), name="cache")]
            running += [tasks.create_task(completion.mark(), name=f"marking {number}") for number in range(AT_ONCE)]
            await cache.wait_synced()
            began = time.perf_counter()
            bodies = (orjson.dumps(trainjob(f"{prefix}-{number}")) for number in range(count))
            await for_each(bodies, lambda body: user.create(TRAINJOBS, NAMESPACE, body))
            await completion.wait(PATIENCE_SECONDS)
            seconds = time.perf_counter() - began
            for task in running:
                task.cancel()
    if len(completion.complete) < count:
        raise Problem(f"{len(completion.complete)} of {count} TrainJobs are Complete after {PATIENCE_SECONDS:g} s")
    return seconds


async def bare_seconds(kubeconfig: Path, count: int, pattern: str) -> float:
    """How long the writes of such a storm take by themselves: what the manager wrote for one TrainJob, anew for each.

    `pattern` is the TrainJob whose snapshot, JobSet and status are written again under other names.
    """
    async with connected(kubeconfig) as client:
        snapshot = _pattern(await client.get(CONFIG_MAPS, ObjectKey(NAMESPACE, f"{pattern}-runtime-snapshot")))
        jobset = _pattern(await client.get(JOBSETS, ObjectKey(NAMESPACE, pattern)))
        status = orjson.loads(await client.get(TRAINJOBS, ObjectKey(NAMESPACE, pattern)))["status"]
        names = [f"bare-{number}" for number in range(count)]
        suspended = [trainjob(name) for name in names]
        for body in suspended:
            body["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"  # so that no manager touches it
        await for_each(suspended, lambda body: client.create(TRAINJOBS, NAMESPACE, orjson.dumps(body)))
        began = time.perf_counter()

        async def write(name: str) -> None:
            await client.create(CONFIG_MAPS, NAMESPACE, _named(snapshot, f"{name}-runtime-snapshot"))
            await client.apply(JOBSETS, ObjectKey(NAMESPACE, name), _named(jobset, name), field_manager="bench")
            body = {"apiVersion": TRAINJOBS.api_version, "kind": TRAINJOBS.kind, "metadata": {"name": name}}
            applied = orjson.dumps({**body, "status": status})
            await client.apply(
                TRAINJOBS, ObjectKey(NAMESPACE, name), applied, field_manager="bench", subresource="status"
            )

        await for_each(names, write)
        return time.perf_counter() - began


def _pattern(raw: bytes) -> dict[str, Any]:
    value: dict[str, Any] = orjson.loads(raw)
    value.pop("status", None)
    value["metadata"] = {"labels": value["metadata"].get("labels", {})}
    return value


def _named(pattern: dict[str, Any], name: str) -> bytes:
    return orjson.dumps({**pattern, "metadata": {**pattern["metadata"], "name": name}})
