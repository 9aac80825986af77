"""What holds while something is wrong with a TrainJob, or with what we know of it."""

import itertools
from typing import Any

import pytest
from structlog.testing import capture_logs

from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, JOBSETS, TRAINJOBS
from ktrainer.kube.errors import ApiError
from ktrainer.kube.identity import ObjectKey
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.machinery.cache.informer import Informer
from support.apiserver import Call
from support.modelevents import api_error
from support.modelserver import ModelServer
from support.training import job, runtime
from support.trainingcluster import TrainingCluster, controller, idle_cluster, training_cluster
from support.virtualtime import VirtualClock

SNAPSHOT = "demo-runtime-snapshot"
STATUS = "apply trainjobs status"
LIMITED = runtime(mlPolicy={"numNodes": 2, "torch": {}}, runPolicy={"activeDeadlineSeconds": 60})


def spoil_snapshot(cluster: TrainingCluster) -> None:
    """Put something into the place of the snapshot that belongs to nobody."""
    cluster.server.remove(CONFIG_MAPS, SNAPSHOT)
    metadata = {"name": SNAPSHOT, "namespace": "team-a", "labels": {"trainer.kubeflow.org/trainjob-name": "demo"}}
    cluster.server.create(CONFIG_MAPS, {"metadata": metadata, "data": {"runtime": ""}})


async def test_an_error_that_is_told_in_other_words_each_time_should_be_met_with_patience(
    virtual_clock: VirtualClock,
) -> None:
    ports = itertools.count(40_000)

    def refuse(call: Call) -> ApiError | None:
        text = f"read tcp 10.0.0.1:{next(ports)}: connection reset by peer"
        return api_error(500, "InternalError", text) if call.resource == JOBSETS else None

    async with training_cluster(virtual_clock) as cluster:
        cluster.server.refuse = refuse
        cluster.submit()
        await cluster.wait(60)
        writes = cluster.server.writes()
        assert (writes.count("apply jobsets") <= 20, writes.count(STATUS) <= 3) == (True, True)
        (ready,) = [each for each in cluster.status()["conditions"] if each["type"] == "ResourcesReady"]
        assert int(ready["message"].partition(":4")[2][:4]) > 0, "the words are renewed once in a while"


async def test_a_server_that_asks_for_a_wait_should_have_it(virtual_clock: VirtualClock) -> None:
    tries: list[float] = []

    def refuse(call: Call) -> ApiError | None:
        if call.resource != JOBSETS or call.verb != "apply":
            return None
        tries.append(virtual_clock.monotonic())
        return api_error(429, "TooManyRequests", retry_after=120)

    async with training_cluster(virtual_clock) as cluster:
        cluster.server.refuse = refuse
        cluster.submit()
        await cluster.wait(245)
        assert cluster.conditions()["ResourcesReady"] == "False ApplyFailed"
        # What changes is looked at nevertheless, as our own first writes are.
        assert [at for at in tries if at > 5] == [pytest.approx(120, abs=1), pytest.approx(240, abs=1)]
        assert len(tries) <= 5


async def test_a_snapshot_should_not_be_exchanged_while_something_else_is_wrong(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.server.create(JOBSETS, {"metadata": {"name": "demo", "namespace": "team-a"}, "spec": {"mine": True}})
        cluster.submit()
        await cluster.wait(1)
        snapshot = cluster.server.find(CONFIG_MAPS, SNAPSHOT)
        assert snapshot is not None
        text = snapshot["data"]["runtime"].replace("img/node:1", "img/miner:1")
        cluster.server.change(CONFIG_MAPS, SNAPSHOT, {"data": {"runtime": text}})
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait(61)
        assert cluster.conditions()["ResourcesReady"] == "False RuntimeSnapshotInvalid"
        assert cluster.server.find(JOBSETS, "demo") is None


async def test_the_deadline_of_the_runtime_should_hold_though_the_snapshot_is_spoilt(
    virtual_clock: VirtualClock,
) -> None:
    async with idle_cluster(virtual_clock, LIMITED) as cluster:
        cluster.submit()
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(5)
            spoil_snapshot(cluster)
            await cluster.wait(5)
            assert cluster.conditions()["ResourcesReady"] == "False RuntimeSnapshotInvalid"
        # Whoever starts anew has not seen the snapshot as it was.
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(45)
            assert cluster.status()["state"] == "Pending"
            await cluster.wait(10)
            assert cluster.conditions()["Failed"] == "True DeadlineExceeded"


async def test_the_deadline_should_hold_though_neither_snapshot_nor_runtime_can_be_had(
    virtual_clock: VirtualClock,
) -> None:
    async with training_cluster(virtual_clock, LIMITED) as cluster:
        cluster.submit()
        await cluster.wait(5)
        spoil_snapshot(cluster)
        cluster.server.remove(CLUSTER_TRAINING_RUNTIMES, "rt")
        await cluster.wait(60)
        assert cluster.conditions()["Failed"] == "True DeadlineExceeded"


async def test_the_state_should_follow_the_workload_though_nothing_can_be_planned(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait(1)
        cluster.report(active=1, ready=1)
        await cluster.wait(1)
        spoil_snapshot(cluster)
        await cluster.wait(1)
        assert (cluster.status()["state"], cluster.conditions()["Running"]) == ("Running", "True NodesReady")
        cluster.report(active=1)
        await cluster.wait(2)
        assert (cluster.status()["state"], cluster.conditions()["Running"]) == ("Pending", "False Pending")


async def test_a_jobset_should_not_count_as_deleted_by_the_word_of_a_cache_alone(virtual_clock: VirtualClock) -> None:
    async with idle_cluster(virtual_clock, runtime(template={"ttlSecondsAfterFinished": 5})) as cluster:
        cluster.submit()
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(1)
            cluster.report(active=1)
            await cluster.wait(2)
        cluster.server.take()
        cluster.server.shown = {JOBSETS: ModelServer(JOBSETS)}
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(5)
            assert (cluster.status()["state"], cluster.server.take()) == ("Pending", [])


@pytest.mark.parametrize("template", [{}, {"ttlSecondsAfterFinished": 5}], ids=["stays", "deletes itself"])
async def test_an_end_should_not_be_taken_back_by_who_has_not_seen_it(
    virtual_clock: VirtualClock, template: dict[str, Any]
) -> None:
    async with idle_cluster(virtual_clock, runtime(template=template)) as cluster:
        cluster.submit()
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(1)
            cluster.report(active=1, ready=1)
            await cluster.wait(2)
            behind = frozen(cluster, "demo")
            cluster.report(succeeded=1, end="Completed")
            await cluster.wait(2)
        cluster.server.remove(JOBSETS, "demo")
        cluster.server.take()
        cluster.server.shown = {TRAINJOBS: behind}
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(30)
        assert (cluster.status()["state"], cluster.server.find(JOBSETS, "demo")) == ("Complete", None)


async def test_a_jobset_should_not_be_built_again_for_a_trainjob_that_only_seems_to_be_new(
    virtual_clock: VirtualClock,
) -> None:
    async with idle_cluster(virtual_clock) as cluster:
        cluster.submit()
        behind = frozen(cluster, "demo")
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(1)
            cluster.report(succeeded=1, end="Completed")
            await cluster.wait(1)
        cluster.server.remove(JOBSETS, "demo")
        cluster.server.shown = {TRAINJOBS: behind}
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(30)
        assert (cluster.status()["state"], cluster.server.find(JOBSETS, "demo")) == ("Complete", None)


def frozen(cluster: TrainingCluster, name: str) -> ModelServer:
    """What a watch of TrainJobs shows from now on, if it falls silent."""
    present = cluster.server.find(TRAINJOBS, name)
    assert present is not None
    behind = ModelServer(TRAINJOBS, revision=int(present["metadata"]["resourceVersion"]) - 1)
    behind.write(ObjectKey("team-a", name), copy_of(present))
    return behind


async def test_no_jobset_should_be_built_while_it_is_not_known_how_those_ended_that_are_gone(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        with monkeypatch.context() as relisted:
            relisted.setattr(Informer, "is_telling", True)
            cluster.submit()
            await cluster.wait(5)
            assert cluster.server.take() == []
        await cluster.wait(5)
        assert cluster.conditions()["ResourcesReady"] == "True Applied"


async def test_the_start_should_be_that_of_the_last_resume(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock, runtime(job("node", "trainer"))) as cluster:
        cluster.submit()
        await cluster.wait(1)
        first = cluster.status()["startTime"]
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": True}})
        await cluster.wait(60)
        assert "startTime" not in cluster.status()
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": False}})
        await cluster.wait(1)
        (resumed,) = [each for each in cluster.status()["conditions"] if each["type"] == "Suspended"]
        assert cluster.status()["startTime"] == resumed["lastTransitionTime"] > first


@pytest.mark.parametrize("at, is_gone", [("2026-01-01T00:00:02Z", True), ("yesterday", False)])
async def test_a_completion_at_a_time_that_cannot_be_read_should_be_that_of_the_condition(
    virtual_clock: VirtualClock, at: str, is_gone: bool
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        with capture_logs() as logs:
            cluster.submit(ttlSecondsAfterFinished=30)
            await cluster.wait(1)
            end = {"type": "Failed", "status": "True", "reason": "R", "message": "", "lastTransitionTime": at}
            cluster.server.apply_status("demo", "other", {"conditions": [end], "completionTime": "yesterday"})
            await cluster.wait(60)
        assert (cluster.server.find(TRAINJOBS, "demo") is None) == is_gone
        assert [each for each in logs if each["log_level"] == "error"] == []
