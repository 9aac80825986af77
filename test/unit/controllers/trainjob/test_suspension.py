"""A suspension reaches the JobSet whatever else is wrong: pods that shall stop must not run on."""

from collections.abc import Callable
from typing import Any

import pytest

from ktrainer.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    JOBSETS,
    PRIORITY_CLASSES,
    TRAINJOBS,
)
from ktrainer.kube.errors import ApiError
from support import trainingcluster
from support.apiserver import Call
from support.modelevents import api_error
from support.training import job, runtime
from support.trainingcluster import TrainingCluster, training_cluster
from support.virtualtime import VirtualClock

STATUS = "apply trainjobs status"
SNAPSHOT = "demo-runtime-snapshot"
PLAIN = runtime(mlPolicy={"numNodes": 2, "torch": {}})
GANG = runtime(mlPolicy={"numNodes": 2, "torch": {}}, podGroupPolicy={"coscheduling": {}})
URGENT = runtime(job(pod={"priorityClassName": "high"}), podGroupPolicy={"volcano": {}})


def spoil_snapshot(cluster: TrainingCluster) -> None:
    cluster.server.change(CONFIG_MAPS, SNAPSHOT, {"data": {"runtime": ""}})


def lose_runtime(cluster: TrainingCluster) -> None:
    cluster.server.remove(CLUSTER_TRAINING_RUNTIMES, "rt")
    cluster.server.remove(CONFIG_MAPS, SNAPSHOT)


def lose_priority(cluster: TrainingCluster) -> None:
    cluster.server.remove(PRIORITY_CLASSES, "high")


def refuse_gang(cluster: TrainingCluster) -> None:
    def refuse(call: Call) -> ApiError | None:
        is_gang = call.resource == COSCHEDULING_POD_GROUPS and call.verb == "apply"
        return api_error(422, "Invalid", "spec.minMember is wrong") if is_gang else None

    cluster.server.refuse = refuse
    cluster.server.change(COSCHEDULING_POD_GROUPS, "demo", {"spec": {"minMember": 1}})


def suspend(cluster: TrainingCluster, *, is_held: bool = True) -> None:
    cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": is_held}})


def is_suspended(cluster: TrainingCluster) -> bool:
    jobset = cluster.server.find(JOBSETS, "demo")
    assert jobset is not None
    return bool(jobset["spec"].get("suspend"))


async def begin(cluster: TrainingCluster, **spec: Any) -> None:
    cluster.submit(**spec)
    await cluster.wait(1)
    cluster.report(active=1, ready=1)
    await cluster.wait(1)
    assert cluster.status()["state"] == "Running"
    cluster.server.take()


@pytest.mark.parametrize(
    "value, spoil, reason",
    [
        pytest.param(PLAIN, spoil_snapshot, "RuntimeSnapshotInvalid", id="the snapshot is spoilt"),
        pytest.param(PLAIN, lose_runtime, "RuntimeNotFound", id="snapshot and runtime are gone"),
        pytest.param(URGENT, lose_priority, "ValidationRejected", id="the priority class is gone"),
        pytest.param(GANG, refuse_gang, "ApplyRefused", id="the gang is refused"),
    ],
)
async def test_a_suspension_should_reach_the_jobset_whatever_else_is_wrong(
    virtual_clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    value: dict[str, Any],
    spoil: Callable[[TrainingCluster], None],
    reason: str,
) -> None:
    monkeypatch.setattr(trainingcluster, "RESOURCES", (*trainingcluster.RESOURCES, PRIORITY_CLASSES))
    async with training_cluster(virtual_clock, value) as cluster:
        cluster.server.create(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 5})
        await begin(cluster)
        spoil(cluster)
        suspend(cluster)
        await cluster.wait(1)
        assert (is_suspended(cluster), cluster.status()["state"]) == (True, "Suspended")
        assert cluster.conditions()["ResourcesReady"] == f"False {reason}"
        await cluster.wait(90)
        assert cluster.server.writes().count("patch jobsets") == 1


async def test_a_suspension_that_fails_should_be_tried_again_soon(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        spoil_snapshot(cluster)
        await cluster.wait(1)
        failed = api_error(500, "InternalError", "etcd is slow")
        cluster.server.refuse = lambda call: failed if call.resource == JOBSETS and call.verb == "patch" else None
        suspend(cluster)
        await cluster.wait(1)
        (ready,) = [each for each in cluster.status()["conditions"] if each["type"] == "ResourcesReady"]
        assert (ready["reason"], "etcd is slow" in ready["message"]) == ("ApplyFailed", True)
        cluster.server.refuse = lambda call: None
        await cluster.wait(5)
        assert is_suspended(cluster)
        assert cluster.conditions()["ResourcesReady"] == "False RuntimeSnapshotInvalid"


async def test_a_suspension_of_a_job_that_is_well_should_be_one_patch(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock, GANG) as cluster:
        await begin(cluster)
        suspend(cluster)
        await cluster.wait(90)
        assert cluster.server.take() == ["patch jobsets", STATUS]


async def test_a_jobset_of_somebody_else_should_not_be_suspended(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.server.create(JOBSETS, {"metadata": {"name": "demo", "namespace": "team-a"}, "spec": {"mine": True}})
        cluster.server.remove(CLUSTER_TRAINING_RUNTIMES, "rt")
        cluster.submit(suspend=True)
        await cluster.wait(90)
        assert not is_suspended(cluster)


async def test_a_quick_suspension_should_start_the_deadline_anew(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster, activeDeadlineSeconds=100)
        await cluster.wait(88)
        suspend(cluster)
        await cluster.wait(0.1)
        assert is_suspended(cluster)
        cluster.report(suspended=1)
        suspend(cluster, is_held=False)
        await cluster.wait(30)
        assert not is_suspended(cluster)
        assert cluster.conditions()["Suspended"] == "False Resumed"
        assert "Failed" not in cluster.conditions()
        await cluster.wait(80)
        assert cluster.conditions()["Failed"] == "True DeadlineExceeded"


async def test_a_trainjob_that_is_created_suspended_should_not_be_told_of_at_once(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(0.1)
        cluster.report(suspended=1)
        await cluster.wait(5)
        assert cluster.server.take() == ["create configmaps", "apply jobsets", STATUS]
