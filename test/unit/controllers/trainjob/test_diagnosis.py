"""When the failures of a workload are looked at: once at each restart and at the end, and again where that failed."""

import asyncio
from typing import Any

import pytest

from ktrainer.api.resources import CONFIG_MAPS, JOBSETS, PODS, TRAINJOBS
from support.modelevents import api_error
from support.podrecords import container, ended, pod
from support.trainingcluster import TrainingCluster, controller, idle_cluster, training_cluster
from support.virtualtime import VirtualClock


def add_pod(cluster: TrainingCluster, name: str, code: int, attempt: int = 0) -> None:
    """Let a pod of the TrainJob have failed."""
    made = pod(name, container(ended(code)), attempt=attempt)
    labels = {**made["metadata"]["labels"], "jobset.sigs.k8s.io/jobset-name": "demo"}
    created = cluster.server.find(JOBSETS, "demo")
    assert created is not None
    at = created["metadata"]["creationTimestamp"]
    metadata = {**made["metadata"], "namespace": "team-a", "labels": labels, "creationTimestamp": at}
    cluster.server.create(PODS, {**made, "metadata": metadata})


def restart(cluster: TrainingCluster, count: int, active: int = 1) -> None:
    """Let the JobSet have been restarted so often."""
    cluster.server.change(JOBSETS, "demo", {"status": {"restarts": count}})
    cluster.report(active=active)


def looks(cluster: TrainingCluster) -> int:
    """How often the pods were listed."""
    return len(cluster.server.stores[PODS].asked)


async def begin(cluster: TrainingCluster) -> None:
    cluster.submit()
    await cluster.wait(1)


async def test_failures_should_be_looked_at_once_for_each_restart(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        add_pod(cluster, "a", 3)
        for active in range(5):
            restart(cluster, 1, active)
            await cluster.wait(2)
        assert (looks(cluster), cluster.status()["firstFailure"]["exitCode"]) == (1, 3)


async def test_a_jobset_that_was_built_anew_should_be_counted_anew(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        restart(cluster, 2)
        await cluster.wait(2)
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait(2)
        before = looks(cluster)
        for active in range(5):
            cluster.report(active=active)
            await cluster.wait(2)
        assert looks(cluster) == before


async def test_a_namesake_that_came_unnoticed_should_be_counted_anew(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        restart(cluster, 2)
        await cluster.wait(2)
        for resource, name in ((TRAINJOBS, "demo"), (JOBSETS, "demo"), (CONFIG_MAPS, "demo-runtime-snapshot")):
            cluster.server.remove(resource, name)
        await begin(cluster)
        before = looks(cluster)
        for active in range(3):
            restart(cluster, 1, active)
            await cluster.wait(2)
        assert looks(cluster) == before + 1


async def test_a_restart_while_nobody_looked_should_be_looked_at_later(virtual_clock: VirtualClock) -> None:
    async with idle_cluster(virtual_clock) as cluster:
        async with controller(cluster.server, virtual_clock):
            await begin(cluster)
            add_pod(cluster, "a", 3)
            restart(cluster, 1)
            await cluster.wait(2)
        cluster.server.remove(PODS, "a")
        add_pod(cluster, "b", 5, attempt=1)
        restart(cluster, 2)
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(2)
            assert cluster.status()["firstFailure"]["exitCode"] == 5


@pytest.mark.parametrize("is_final", [pytest.param(False, id="at a restart"), pytest.param(True, id="at the end")])
async def test_what_could_not_be_looked_at_should_be_looked_at_again(
    virtual_clock: VirtualClock, is_final: bool
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        add_pod(cluster, "a", 3)
        cluster.server.stores[PODS].outage = api_error(403, "Forbidden")
        if is_final:
            cluster.report(end="Failed", failed=1)
        else:
            restart(cluster, 1)
        await cluster.wait(2)
        assert "firstFailure" not in cluster.status()
        assert (cluster.status()["state"] == "Failed") == is_final, "the end itself is told at once"
        cluster.server.stores[PODS].outage = None
        if not is_final:
            cluster.report(active=2)
        await cluster.wait(30)
        assert cluster.status()["firstFailure"]["exitCode"] == 3


async def never(*args: Any, **kwargs: Any) -> bytes:
    """What comes of a list that a server which is overloaded does not get done."""
    await asyncio.sleep(100_000)
    return b""


async def nonsense(*args: Any, **kwargs: Any) -> bytes:
    """What no API server answers."""
    return b'{"kind": "PodList", "metadata": {}, "items": null}'


@pytest.mark.parametrize("answer", [never, nonsense])
async def test_whatever_comes_of_the_look_the_end_itself_should_be_told(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        add_pod(cluster, "a", 3)
        with monkeypatch.context() as troubled:
            troubled.setattr(cluster.server.stores[PODS], "list_page", answer)
            cluster.report(end="Failed", failed=1)
            await cluster.wait(59)
            assert cluster.status()["state"] == "Failed"
        await cluster.wait(120)
        assert cluster.status()["firstFailure"]["exitCode"] == 3


async def test_what_cannot_be_looked_at_should_not_hold_up_the_time_to_live(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(ttlSecondsAfterFinished=30)
        await cluster.wait(1)
        cluster.server.stores[PODS].outage = api_error(403, "Forbidden")
        cluster.report(end="Failed", failed=1)
        await cluster.wait(28)
        assert cluster.status()["state"] == "Failed"
        await cluster.wait(4)
        assert cluster.server.find(TRAINJOBS, "demo") is None
