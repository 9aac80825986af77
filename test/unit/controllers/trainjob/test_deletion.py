"""TrainJobs that are being deleted while somebody's finalizer, or their own pods, hold them."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from ktrainer.api.resources import CONFIG_MAPS, JOBSETS, TRAINJOBS
from support.training import runtime
from support.trainingcluster import TrainingCluster, training_cluster
from support.virtualtime import VirtualClock

STATUS = "apply trainjobs status"


def delete(cluster: TrainingCluster, finalizer: str) -> None:
    """Delete the TrainJob, which a finalizer holds."""
    at = {"deletionTimestamp": "2026-01-01T00:00:03Z", "finalizers": [finalizer]}
    cluster.server.change(TRAINJOBS, "demo", {"metadata": at})


async def begin(cluster: TrainingCluster, finalizer: str = "acme.io/audit", **spec: Any) -> None:
    cluster.submit(**spec)
    await cluster.wait(1)
    cluster.report(active=1, ready=1)
    await cluster.wait(1)
    delete(cluster, finalizer)
    await cluster.wait(1)
    cluster.server.take()


async def test_a_suspension_should_reach_the_jobset(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": True}})
        await cluster.wait(90)
        assert cluster.server.take() == ["patch jobsets", STATUS]
        assert cluster.status()["state"] == "Suspended"
        assert cluster.conditions()["ResourcesReady"] == "True Applied"


@pytest.mark.parametrize("end, state", [("Completed", "Complete"), ("Failed", "Failed")])
async def test_the_end_should_be_told_and_nothing_be_deleted(virtual_clock: VirtualClock, end: str, state: str) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster, ttlSecondsAfterFinished=5)
        cluster.report(end=end)
        await cluster.wait(90)
        assert (cluster.status()["state"], cluster.server.take()) == (state, [STATUS])


async def test_the_end_of_a_jobset_that_is_gone_should_count(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        cluster.report(end="Completed", succeeded=1)
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait(1)
        assert cluster.status()["state"] == "Complete"


async def test_the_deadline_should_hold(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster, activeDeadlineSeconds=60)
        await cluster.wait(60)
        assert cluster.conditions()["Failed"] == "True DeadlineExceeded"
        assert cluster.server.take() == [STATUS, "delete jobsets"]


async def test_what_is_collected_meanwhile_should_not_come_back(virtual_clock: VirtualClock) -> None:
    deletes_itself = runtime(template={"ttlSecondsAfterFinished": 5})
    async with training_cluster(virtual_clock, deletes_itself) as cluster:
        with capture_logs() as logs:
            await begin(cluster, "foregroundDeletion", activeDeadlineSeconds=60)
            at = {"deletionTimestamp": "2026-01-01T00:00:03Z", "finalizers": ["foregroundDeletion"]}
            cluster.server.change(JOBSETS, "demo", {"metadata": at})
            await cluster.wait(1)
            for resource, name in ((CONFIG_MAPS, "demo-runtime-snapshot"), (JOBSETS, "demo")):
                cluster.server.remove(resource, name)
                await cluster.wait(1)
            await cluster.wait(90)
            assert (cluster.status()["state"], cluster.conditions()) == ("Running", {})
            cluster.server.remove(TRAINJOBS, "demo")
            await cluster.wait(90)
            assert cluster.server.take() == []
    assert [each for each in logs if each["log_level"] in {"warning", "error"}] == []
