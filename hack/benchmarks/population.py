"""A cluster full of TrainJobs of an ordinary size, for what has to read them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
import yaml
from prometheus_client import CollectorRegistry

from clusters import install
from clusters.api import Api
from clusters.wait import wait_for
from controlplane.product import MODULES
from ktrainer.aio.clock import SystemClock
from ktrainer.client.config import load_config
from ktrainer.client.connect import connect
from ktrainer.client.patchtype import PatchType
from ktrainer.kube.identity import ObjectKey, Resource

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from ktrainer.client.client import Client

TRAINJOBS = Resource("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", namespaced=True)
CRDS = MODULES.parent.parent / "config" / "crd"
_AT_ONCE = 16


def install_crds(kubeconfig: Path) -> None:
    """Make the API server serve our kinds."""
    api = Api(kubeconfig)
    crds = [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in sorted(CRDS.glob("*.yaml"))]
    install.apply_all(api, crds)
    if not wait_for(lambda: install.established(api, crds), 30):
        raise SystemExit("the API server does not serve our CRDs")
    api.close()


def trainjob(name: str) -> dict[str, Any]:
    """A TrainJob of about four kilobytes once the server has stored it."""
    env = [{"name": f"SETTING_{number}", "value": f"the value of setting number {number}"} for number in range(12)]
    trainer = {
        "image": "registry.example/research/trainer:2026.11",
        "command": ["torchrun", "train.py"],
        "args": [f"--option-{number}=value-{number}" for number in range(12)],
        "env": env,
        "numNodes": 2,
        "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8", "cpu": "64", "memory": "512Gi"}},
    }
    labels = {"team": "research", "project": "language-models", "kueue.x-k8s.io/queue-name": "gpu"}
    return {
        "apiVersion": TRAINJOBS.api_version,
        "kind": TRAINJOBS.kind,
        "metadata": {"name": name, "labels": labels, "annotations": {"example.org/notes": "x" * 300}},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer, "suspend": False},
    }


async def create_trainjobs(kubeconfig: Path, count: int) -> None:
    """Create TrainJobs, with a status as a controller writes it."""
    await _for_each(kubeconfig, count, _create)


async def touch_trainjobs(kubeconfig: Path, count: int) -> None:
    """Change each of the TrainJobs once."""
    await _for_each(kubeconfig, count, _touch)


async def _for_each(kubeconfig: Path, count: int, work: Callable[[Client, Iterator[int]], Awaitable[None]]) -> None:
    registry = CollectorRegistry()
    config = load_config(kubeconfig, None)
    connection = connect(config, component="bench", clock=SystemClock(), registry=registry, qps=1e6, burst=10**6)
    numbers = iter(range(count))
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(_run(work, connection.client, numbers))
    finally:
        await connection.close()


async def _run(
    work: Callable[[Client, Iterator[int]], Awaitable[None]], client: Client, numbers: Iterator[int]
) -> None:
    await work(client, numbers)


async def _create(client: Client, numbers: Iterator[int]) -> None:
    for number in numbers:
        name = f"job-{number:05}"
        await client.create(TRAINJOBS, "default", orjson.dumps(trainjob(name)))
        time = "2026-01-01T00:00:00Z"
        condition = {
            "type": "Complete",
            "status": "True",
            "reason": "Done",
            "message": "done",
            "lastTransitionTime": time,
        }
        jobs = [{"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}]
        status = {"status": {"conditions": [condition], "jobsStatus": jobs}}
        body = {"apiVersion": TRAINJOBS.api_version, "kind": TRAINJOBS.kind, "metadata": {"name": name}, **status}
        key = ObjectKey("default", name)
        await client.apply(TRAINJOBS, key, orjson.dumps(body), field_manager="bench", subresource="status")


async def _touch(client: Client, numbers: Iterator[int]) -> None:
    for number in numbers:
        body = orjson.dumps({"metadata": {"annotations": {"example.org/touched": "yes"}}})
        await client.patch(TRAINJOBS, ObjectKey("default", f"job-{number:05}"), body, PatchType.MERGE)
