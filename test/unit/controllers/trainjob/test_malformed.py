"""TrainJobs that cannot be read as a whole: older schemas let pass what ours does not, and some have begun by then."""

from typing import Any

import pytest
from structlog.testing import capture_logs

from ktrainer.api.resources import JOBSETS, TRAINJOBS
from support.trainingcluster import TrainingCluster, training_cluster
from support.virtualtime import VirtualClock

REJECTED = "False ValidationRejected"


def spoil(cluster: TrainingCluster) -> None:
    """Let the TrainJob have a spec that no schema of ours would let pass."""
    cluster.server.change(TRAINJOBS, "demo", {"spec": {"trainer": {"numNodes": 0}}})


async def begin(cluster: TrainingCluster, **spec: Any) -> None:
    """Let a TrainJob run, and then be malformed."""
    cluster.submit(**spec)
    await cluster.wait(1)
    cluster.report(active=1, ready=1)
    await cluster.wait(1)
    spoil(cluster)
    await cluster.wait(1)


async def test_what_runs_should_be_followed(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        assert (cluster.status()["state"], cluster.conditions()["ResourcesReady"]) == ("Running", REJECTED)
        cluster.report(active=1)
        await cluster.wait(1)
        assert cluster.status()["state"] == "Pending"
        cluster.report(end="Completed", succeeded=1)
        await cluster.wait(1)
        assert (cluster.status()["state"], cluster.conditions()["Complete"]) == ("Complete", "True AllCompleted")


async def test_the_deadline_should_hold(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster, activeDeadlineSeconds=60)
        await cluster.wait(60)
        assert cluster.conditions()["Failed"] == "True DeadlineExceeded"
        assert cluster.server.find(JOBSETS, "demo") is None


async def test_a_suspension_should_reach_the_jobset(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await begin(cluster)
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": True}})
        await cluster.wait(1)
        jobset = cluster.server.find(JOBSETS, "demo")
        assert jobset is not None
        assert (jobset["spec"]["suspend"], cluster.status()["state"]) == (True, "Suspended")


async def test_what_is_suspended_should_not_seem_to_be_resumed(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(1)
        spoil(cluster)
        await cluster.wait(1)
        assert cluster.conditions() == {
            "Suspended": "True Suspended",
            "ResourcesReady": REJECTED,
            "Running": "False Suspended",
        }


@pytest.mark.parametrize("name", ["1st", "a.b", "x" * 64])
async def test_a_name_that_was_once_allowed_should_be_told_of(virtual_clock: VirtualClock, name: str) -> None:
    async with training_cluster(virtual_clock) as cluster:
        with capture_logs() as logs:
            cluster.submit(name)
            await cluster.wait(1)
        assert (cluster.status(name)["state"], cluster.conditions(name)["ResourcesReady"]) == ("Pending", REJECTED)
        assert [each for each in logs if each["log_level"] == "error"] == []


async def test_what_somebody_else_runs_should_be_left_alone(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(runtimeRef={"name": 1}, managedBy="kueue.x-k8s.io/multikueue")
        await cluster.wait(5)
        assert cluster.server.take() == []


async def test_what_the_original_has_finished_should_get_its_state(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(trainer={"numNodes": 0}, managedBy="kueue.x-k8s.io/multikueue")
        end = {"type": "Complete", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        cluster.server.apply_status("demo", "original", {"conditions": [end]})
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"managedBy": None}})
        await cluster.wait(1)
        assert (cluster.status()["state"], cluster.status()["completionTime"]) == ("Complete", "2026-01-01T00:00:00Z")


async def test_what_others_have_written_into_a_status_should_disturb_nothing(virtual_clock: VirtualClock) -> None:
    # API servers take such a time, which is none for most who read it.
    odd = {"trainerStatus": {"progressPercentage": 5, "lastUpdatedTime": "2026-01-01t00:00:00z"}}
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(1)
        cluster.server.apply_status("demo", "other", odd)
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": False}})
        await cluster.wait(1)
        cluster.report(active=1, ready=1)
        await cluster.wait(1)
        assert (cluster.status()["state"], cluster.conditions()) == ("Running", {"Suspended": "False Resumed"})
        cluster.server.take()
        await cluster.wait(60)
        assert cluster.server.take() == []
        cluster.report(end="Completed", succeeded=1)
        await cluster.wait(1)
        assert cluster.status()["state"] == "Complete"


@pytest.mark.parametrize("message", [None, 7])
async def test_an_end_that_cannot_be_read_at_a_glance_should_be_the_end(
    virtual_clock: VirtualClock, message: Any
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(managedBy="kueue.x-k8s.io/multikueue")
        end = {"type": "Complete", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        odd = {"type": "Odd", "status": "True", "reason": "R", "message": message}
        cluster.server.apply_status("demo", "original", {"conditions": [odd, end]})
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"managedBy": None}})
        await cluster.wait(5)
        assert cluster.server.take() == []


@pytest.mark.parametrize(
    "status",
    [
        {"replicatedJobsStatus": [{"ready": 1}, {"name": "node", "active": "one"}, {"name": "node", "ready": -1}]},
        {"replicatedJobsStatus": "none", "restarts": "many"},
        {"conditions": [None, {"status": "True"}, {"type": [], "status": "True"}]},
    ],
)
async def test_the_end_of_a_jobset_should_be_found_in_a_status_that_is_malformed(
    virtual_clock: VirtualClock, status: dict[str, Any]
) -> None:
    end = {"type": "Failed", "status": "True", "reason": None, "message": 7, "lastTransitionTime": "yesterday"}
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait(1)
        cluster.server.change(JOBSETS, "demo", {"status": status})
        await cluster.wait(2)
        assert cluster.status()["state"] == "Pending"
        with capture_logs() as logs:
            conditions = [*status.get("conditions", []), end]
            cluster.server.change(JOBSETS, "demo", {"status": {**status, "conditions": conditions}})
            await cluster.wait(2)
        assert (cluster.status()["state"], cluster.conditions()["Failed"]) == ("Failed", "True Failed")
        assert [each for each in logs if each["log_level"] == "error"] == []


async def test_an_end_should_not_be_taken_back_by_a_status_that_cannot_be_read(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait(1)
        cluster.report(end="Completed", succeeded=1)
        await cluster.wait(1)
        cluster.server.apply_status("demo", "other", {"trainerStatus": {"progressPercentage": 101}})
        for seconds in (90, 80):
            cluster.server.change(TRAINJOBS, "demo", {"spec": {"ttlSecondsAfterFinished": seconds}})
            await cluster.wait(5)
        assert cluster.conditions()["Complete"] == "True AllCompleted"
