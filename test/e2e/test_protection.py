"""Runtimes that are in use wait for their TrainJobs, on a real control plane."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from support.apiobjects import cluster_runtime, replicated_job, runtime
from support.managers import running_manager

if TYPE_CHECKING:
    from pathlib import Path

    from clusters.api import Api, Object
    from clusters.folder import Folder
    from support.managers import Manager
    from support.waiting import Waiter

API = "/apis/trainer.kubeflow.org/v1alpha1"
IN_USE = "trainer.kubeflow.org/resource-in-use"
FOREIGN = "acme.io/mine"
CLUSTER, NAMESPACED = "ClusterTrainingRuntime", "TrainingRuntime"


def finalizers(item: Object) -> list[str]:
    found: list[str] = item["metadata"].get("finalizers", [])
    return found


def create_runtime(admin: Api, namespace: str, kind: str, finalizers: tuple[str, ...] = ()) -> str:
    """Create a runtime, and return its path."""
    is_cluster = kind == CLUSTER
    item = (cluster_runtime if is_cluster else runtime)(template={"spec": {"replicatedJobs": [replicated_job()]}})
    item["metadata"] = {"name": f"rt-{uuid.uuid4().hex[:8]}", "finalizers": list(finalizers)}
    folder = f"{API}/clustertrainingruntimes" if is_cluster else f"{API}/namespaces/{namespace}/trainingruntimes"
    return f"{folder}/{admin.create(folder, item)['metadata']['name']}"


def create_job(admin: Api, namespace: str, kind: str, runtime_path: str, name: str = "job") -> str:
    """Create a suspended TrainJob, which does not finish by itself, and return its path."""
    folder = f"{API}/namespaces/{namespace}/trainjobs"
    ref = {"kind": kind, "name": runtime_path.rpartition("/")[2]}
    item: dict[str, Any] = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": ref, "suspend": True},
    }
    admin.create(folder, item)
    return f"{folder}/{name}"


def finish(admin: Api, job: str) -> None:
    """Let a TrainJob fail."""
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    admin.merge(f"{job}/status", {"status": {"conditions": [failed]}})


@pytest.mark.parametrize("kind", [CLUSTER, NAMESPACED])
def test_a_deletion_should_wait_until_the_last_trainjob_has_finished_or_is_gone(
    manager: Manager, admin: Api, namespace: str, waiter: Waiter, kind: str
) -> None:
    path = create_runtime(admin, namespace, kind, (FOREIGN,))
    jobs = [create_job(admin, namespace, kind, path, name) for name in ("first", "second")]
    waiter.until(path, lambda item: finalizers(item) == [FOREIGN, IN_USE], "the runtime is protected")
    admin.delete(path)
    finish(admin, jobs[0])
    waiter.until(jobs[0], lambda item: item["status"].get("state") == "Failed", "the first TrainJob has failed")
    assert finalizers(admin.get(path)) == [FOREIGN, IN_USE]
    admin.delete(jobs[1])
    waiter.until(path, lambda item: finalizers(item) == [FOREIGN], "only the foreign finalizer is left")
    admin.merge(path, {"metadata": {"finalizers": []}})
    waiter.until_gone(path, "the runtime is gone")


def test_a_runtime_should_be_free_again_when_its_trainjob_has_finished(
    manager: Manager, admin: Api, namespace: str, waiter: Waiter
) -> None:
    path = create_runtime(admin, namespace, CLUSTER)
    job = create_job(admin, namespace, CLUSTER, path)
    waiter.until(path, lambda item: finalizers(item) == [IN_USE], "the runtime is protected")
    finish(admin, job)
    waiter.until(path, lambda item: finalizers(item) == [], "the runtime is free")
    admin.delete(path)
    waiter.until_gone(path, "the runtime is gone")


def test_a_manager_that_comes_back_should_mend_what_happened_meanwhile(
    cluster: Folder, crds: list[Object], admin: Api, namespace: str, waiter: Waiter, tmp_path: Path
) -> None:
    used = create_runtime(admin, namespace, NAMESPACED)
    free = create_runtime(admin, namespace, NAMESPACED, (IN_USE,))
    job = create_job(admin, namespace, NAMESPACED, used)
    with running_manager(cluster, admin, tmp_path) as manager:
        waiter.until(used, lambda item: finalizers(item) == [IN_USE], "the runtime in use is protected")
        waiter.until(free, lambda item: finalizers(item) == [], "the other is not")
        manager.crash()
        admin.delete(job)
        admin.delete(used)
        manager.start()
        waiter.until_gone(used, "the runtime is gone once the manager is back")


def test_with_the_gate_closed_the_finalizer_should_go_and_stay_away(
    cluster: Folder, crds: list[Object], admin: Api, namespace: str, waiter: Waiter, tmp_path: Path
) -> None:
    path = create_runtime(admin, namespace, NAMESPACED, (IN_USE, FOREIGN))
    create_job(admin, namespace, NAMESPACED, path)
    with running_manager(cluster, admin, tmp_path, gates="RuntimeInUseProtection=false"):
        waiter.until(path, lambda item: finalizers(item) == [FOREIGN], "the finalizer is gone")
        admin.merge(path, {"metadata": {"finalizers": []}})
        admin.delete(path)
        waiter.until_gone(path, "the runtime is gone, whatever refers to it")
