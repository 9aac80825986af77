"""A cluster full of TrainJobs of an ordinary size, for what has to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
import yaml

from benchmarks.progress import counted
from benchmarks.writing import connected, for_each
from clusters import install
from clusters.api import Api
from clusters.wait import wait_for
from controlplane.product import MODULES
from ktrainer.client.patchtype import PatchType
from ktrainer.kube.identity import ObjectKey, Resource

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from ktrainer.client.client import Client

TRAINJOBS = Resource("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", namespaced=True)
CRDS = MODULES.parent.parent / "config" / "crd"
_AT_ONCE = 16


def install_crds(kubeconfig: Path) -> None:
    """Make the API server serve our kinds."""
    api = Api(kubeconfig)
    crds = [yaml.load(path.read_bytes(), yaml.CSafeLoader) for path in sorted(CRDS.glob("*.kubeflow.org.yaml"))]
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


async def create_trainjobs(kubeconfig: Path, numbers: Sequence[int]) -> None:
    """Create TrainJobs, with a status as a controller writes it."""
    async with connected(kubeconfig) as client:
        await for_each(counted(numbers), lambda number: _create(client, number), _AT_ONCE)


async def touch_trainjobs(kubeconfig: Path, numbers: Sequence[int]) -> None:
    """Change TrainJobs, each once."""
    async with connected(kubeconfig) as client:
        await for_each(numbers, lambda number: _touch(client, number), _AT_ONCE)


async def _create(client: Client, number: int) -> None:
    name = f"job-{number:05}"
    await client.create(TRAINJOBS, "default", orjson.dumps(trainjob(name)))
    time = "2026-01-01T00:00:00Z"
    condition = {"type": "Complete", "status": "True", "reason": "Done", "message": "done", "lastTransitionTime": time}
    jobs = [{"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}]
    status = {"status": {"conditions": [condition], "jobsStatus": jobs}}
    body = {"apiVersion": TRAINJOBS.api_version, "kind": TRAINJOBS.kind, "metadata": {"name": name}, **status}
    key = ObjectKey("default", name)
    await client.apply(TRAINJOBS, key, orjson.dumps(body), field_manager="bench", subresource="status")


async def _touch(client: Client, number: int) -> None:
    body = orjson.dumps({"metadata": {"annotations": {"example.org/touched": "yes"}}})
    await client.patch(TRAINJOBS, ObjectKey("default", f"job-{number:05}"), body, PatchType.MERGE)
