"""JobSets that refuse to change while they are suspended, and changes that wait."""

from typing import Any

import pytest

from ktrainer.api.resources import JOBSETS, TRAINJOBS
from ktrainer.kube.errors import ApiError
from ktrainer.kube.timestamp import format_time
from support.apiserver import Call
from support.modelevents import api_error
from support.training import runtime
from support.trainingcluster import TrainingCluster, controller, idle_cluster, training_cluster
from support.virtualtime import VirtualClock

READY = "True Applied"
STATUS = "apply trainjobs status"
IMMUTABLE = api_error(422, "Invalid", "spec.replicatedJobs: Invalid value: []: field is immutable")
AFFINITY = {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"affinity": {"podAffinity": {}}}}]}


def change(cluster: TrainingCluster, **spec: Any) -> None:
    cluster.server.change(TRAINJOBS, "demo", {"spec": spec})


def placed(zone: str) -> dict[str, Any]:
    """A change of which a JobSet takes the half, if it has run."""
    pods = {"nodeSelector": {"zone": zone}, "priorityClassName": zone}
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": pods}}}}]
    spec = {"template": {"spec": {"replicatedJobs": jobs}}}
    return {"runtimePatches": [{"manager": "acme.io/zones", "trainingRuntimeSpec": spec}]}


def refuse_changes(cluster: TrainingCluster) -> None:
    """Let JobSets refuse what they cannot change."""

    def refusal(call: Call, body: dict[str, Any], old: dict[str, Any]) -> ApiError | None:
        is_refused = call.verb == "apply" and call.resource == JOBSETS and immutable(body) != immutable(old)
        return IMMUTABLE if is_refused else None

    cluster.server.refuse_change = refusal


def immutable(jobset: dict[str, Any]) -> list[Any]:
    pods = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return [pods.get("affinity"), pods.get("priorityClassName")]


def jobset_of(cluster: TrainingCluster) -> dict[str, Any]:
    found = cluster.server.find(JOBSETS, "demo")
    assert found is not None
    return found


def pods_of(cluster: TrainingCluster) -> dict[str, Any]:
    pods: dict[str, Any] = jobset_of(cluster)["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    return pods


def say(cluster: TrainingCluster, *, is_held: bool) -> None:
    """Let the JobSet controller report that all pods have stopped, or are ready."""
    if is_held:
        cluster.report(suspended=1)
    else:
        cluster.report(active=1, ready=1)
    now = format_time(cluster.server.clock.now())
    condition = {"type": "Suspended", "status": str(is_held), "lastTransitionTime": now}
    cluster.server.change(JOBSETS, "demo", {"status": {"conditions": [condition]}})


async def hold_what_ran(cluster: TrainingCluster, **spec: Any) -> None:
    """Have a TrainJob that ran and is suspended."""
    cluster.submit(**spec)
    await cluster.wait(1)
    say(cluster, is_held=False)
    await cluster.wait(60)
    change(cluster, suspend=True)
    await cluster.wait(1)
    say(cluster, is_held=True)
    await cluster.wait(1)
    cluster.server.take()


@pytest.mark.parametrize("resumes", [False, True], ids=["suspended", "resumed"])
async def test_a_jobset_that_never_ran_should_be_made_anew_where_it_refuses_to_change(
    virtual_clock: VirtualClock, resumes: bool
) -> None:
    async with training_cluster(virtual_clock, runtime(template={"ttlSecondsAfterFinished": 5})) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(0.1)
        say(cluster, is_held=True)
        await cluster.wait(2)
        before = jobset_of(cluster)["metadata"]["uid"]
        refuse_changes(cluster)
        cluster.server.take()
        change(cluster, suspend=not resumes, **AFFINITY)
        await cluster.wait(1)
        assert cluster.server.take() == ["apply jobsets", "delete jobsets", "apply jobsets", STATUS]
        jobset = jobset_of(cluster)
        assert jobset["metadata"]["uid"] != before
        assert jobset["spec"]["suspend"] is not resumes
        assert pods_of(cluster)["affinity"] == {"podAffinity": {}}
        assert cluster.conditions()["ResourcesReady"] == READY
        assert "Failed" not in cluster.conditions()
        await cluster.wait(90)
        assert cluster.server.take() == []


async def test_a_jobset_that_could_not_be_made_anew_at_once_should_be_later(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock, runtime(template={"ttlSecondsAfterFinished": 5})) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(0.1)
        say(cluster, is_held=True)
        await cluster.wait(2)
        refuse_changes(cluster)
        tries = 0

        def refuse(call: Call) -> ApiError | None:
            nonlocal tries
            tries += call.resource == JOBSETS and call.verb == "apply"
            is_refused = call.resource == JOBSETS and call.verb == "apply" and 2 <= tries <= 4
            return api_error(403, "Forbidden", "exceeded quota") if is_refused else None

        cluster.server.refuse = refuse
        change(cluster, suspend=False, **AFFINITY)
        await cluster.wait(200)
        assert pods_of(cluster)["affinity"] == {"podAffinity": {}}
        assert (cluster.conditions()["ResourcesReady"], "Failed" in cluster.conditions()) == (READY, False)


async def test_a_jobset_that_has_changed_meanwhile_should_not_be_deleted(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(2)
        before = jobset_of(cluster)["metadata"]["uid"]

        def refuse(call: Call) -> ApiError | None:
            if call.resource == JOBSETS and call.verb == "delete":
                # Something ran and came to its end after all, and that at the last moment.
                cluster.server.change(JOBSETS, "demo", {"status": {"restarts": 1}})
            return None

        refuse_changes(cluster)
        cluster.server.refuse = refuse
        cluster.server.take()
        change(cluster, **AFFINITY)
        await cluster.wait(5)
        assert cluster.server.take().count("delete jobsets") == 1
        assert jobset_of(cluster)["metadata"]["uid"] == before
        assert cluster.conditions()["ResourcesReady"] == "False ApplyRefused"


async def test_a_jobset_that_is_refused_for_another_reason_should_stay(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(2)
        refusal = api_error(422, "Invalid", "metadata.labels: bad value")
        cluster.server.refuse = lambda call: refusal if str(call) == "apply jobsets" else None
        cluster.server.take()
        change(cluster, **AFFINITY)
        await cluster.wait(2)
        assert set(cluster.server.take()) == {"apply jobsets", STATUS}
        assert cluster.conditions()["ResourcesReady"] == "False ApplyRefused"


async def test_a_jobset_that_ran_should_be_resumed_with_what_it_takes_and_the_rest_be_told(
    virtual_clock: VirtualClock,
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await hold_what_ran(cluster)
        before = jobset_of(cluster)["metadata"]["uid"]
        refuse_changes(cluster)
        change(cluster, **placed("west"))
        await cluster.wait(1)
        writes = cluster.server.take()
        assert (writes[:2], len(writes) < 10) == (["apply jobsets"] * 2, True), "it is not tried without rest"
        assert pods_of(cluster)["nodeSelector"] == {"zone": "west"}
        assert "priorityClassName" not in pods_of(cluster)
        change(cluster, suspend=False)
        await cluster.wait(1)
        assert jobset_of(cluster)["spec"]["suspend"] is False
        say(cluster, is_held=False)
        await cluster.wait(90)
        assert (cluster.status()["state"], jobset_of(cluster)["metadata"]["uid"]) == ("Running", before)
        (ready,) = [each for each in cluster.status()["conditions"] if each["type"] == "ResourcesReady"]
        assert (ready["status"], ready["reason"]) == ("False", "ApplyRefused")
        assert ready["message"].startswith(
            "the JobSet has run before, and keeps what it has of spec.replicatedJobs[node]"
        )
        assert ready["message"].endswith("template.spec.priorityClassName: " + str(IMMUTABLE))
        assert cluster.server.writes().count(STATUS) <= 4


async def test_a_change_that_is_taken_back_should_reach_a_jobset_that_took_its_half(
    virtual_clock: VirtualClock,
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        await hold_what_ran(cluster)
        refuse_changes(cluster)
        change(cluster, **placed("west"))
        await cluster.wait(1)
        cluster.server.take()
        change(cluster, runtimePatches=None)
        await cluster.wait(1)
        assert cluster.server.take() == ["apply jobsets", STATUS]
        assert cluster.conditions()["ResourcesReady"] == READY


async def test_a_change_should_be_told_to_wait_while_pods_stop_and_be_made_although_the_manager_restarts(
    virtual_clock: VirtualClock,
) -> None:
    async with idle_cluster(virtual_clock) as cluster:
        async with controller(cluster.server, virtual_clock):
            cluster.submit()
            await cluster.wait(1)
            say(cluster, is_held=False)
            await cluster.wait(1)
            change(cluster, suspend=True)
            await cluster.wait(1)
            assert cluster.conditions()["ResourcesReady"] == READY, "a suspension alone waits for nothing"
            change(cluster, **placed("west"))
            await cluster.wait(1)
            assert cluster.conditions()["ResourcesReady"] == "False ApplyFailed"
            (ready,) = [each for each in cluster.status()["conditions"] if each["type"] == "ResourcesReady"]
            assert ready["message"].startswith("these changes wait until the last pod of the JobSet has stopped")
            cluster.server.take()
            await cluster.wait(90)
            assert cluster.server.take() == []
        say(cluster, is_held=True)
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(1)
            assert cluster.server.take() == ["apply jobsets", STATUS]
            assert pods_of(cluster)["nodeSelector"] == {"zone": "west"}
            assert cluster.conditions()["ResourcesReady"] == READY
