"""The controller against an API server in the process, in virtual time."""

from typing import Any

import orjson
import pytest

from ktrainer.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    JOBSETS,
    LIMIT_RANGES,
    RUNTIME_CLASSES,
    TRAINJOBS,
)
from ktrainer.client.events.body import EVENTS
from ktrainer.kube.errors import ApiError
from ktrainer.kube.identity import Resource
from support.apiserver import Call
from support.modelevents import api_error
from support.training import container, job, runtime
from support.trainingcluster import TrainingCluster, controller, idle_cluster, training_cluster
from support.virtualtime import VirtualClock

READY = "True Applied"
DEEP = orjson.Fragment(b'{"a":' * 300 + b"1" + b"}" * 300)
"""Can be read by decoders, but not be written by encoders."""
BUILD = ["create configmaps", "apply jobsets"]
STATUS = "apply trainjobs status"


def refusing(plural: str, error: ApiError) -> Any:
    return lambda call: error if call.resource.plural == plural and call.verb in {"apply", "create", "patch"} else None


def notes(cluster: TrainingCluster) -> list[str]:
    return [f"{each['reason']}: {each['note']}" for each in cluster.server.stores[EVENTS].objects.values()]


async def test_a_trainjob_that_completes_at_once_should_cost_three_writes(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait(0.05)
        assert cluster.server.take() == BUILD
        cluster.report(end="Completed", succeeded=1)
        await cluster.wait(0.05)
        assert cluster.server.take() == [STATUS]
        assert cluster.conditions() == {
            "ResourcesReady": READY,
            "Running": "False Finished",
            "Complete": "True AllCompleted",
        }
        status = cluster.status()
        assert (status["state"], status["nodes"], status["startTime"] <= status["completionTime"]) == (
            "Complete",
            2,
            True,
        )
        assert status["runtimeDigest"].startswith("sha256:")
        await cluster.wait(5)
        assert cluster.server.take() == []


async def test_a_whole_life_should_cost_five_writes(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait(0.1)
        cluster.report(active=1)
        await cluster.wait()
        assert (cluster.status()["state"], cluster.conditions()["Running"]) == ("Pending", "False Pending")
        cluster.report(active=1, ready=1)
        await cluster.wait()
        assert (cluster.status()["state"], cluster.conditions()) == ("Running", {})
        cluster.report(end="Completed", succeeded=1)
        await cluster.wait(0.05)
        assert cluster.status()["state"] == "Complete"
        assert cluster.server.take() == [*BUILD, STATUS, STATUS, STATUS]


async def test_a_burst_of_changes_should_be_one_write(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait(1)
        cluster.server.take()
        for active in range(1, 9):
            cluster.report(active=active, ready=active)
            await cluster.wait(0.02)
        await cluster.wait(1)
        assert cluster.server.take() == [STATUS]
        assert cluster.status()["jobsStatus"][0]["active"] == 8


async def test_what_others_have_written_to_the_status_should_stay(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait()
        progress = {"progressPercentage": 5, "lastUpdatedTime": "2026-01-01T00:00:00Z"}
        foreign = {"type": "Admitted", "status": "True", "reason": "Quota", "message": "", "lastTransitionTime": "x"}
        cluster.server.apply_status("demo", "other", {"conditions": [foreign], "trainerStatus": progress})
        cluster.report(end="Failed", failed=1)
        await cluster.wait()
        assert cluster.conditions()["Admitted"] == "True Quota"
        assert cluster.status()["trainerStatus"] == progress
        assert cluster.status()["state"] == "Failed"


async def test_a_trainjob_should_wait_for_its_runtime_and_say_so(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock, runtime(name="another")) as cluster:
        cluster.submit()
        await cluster.wait()
        assert cluster.conditions() == {"ResourcesReady": "False RuntimeNotFound", "Running": "False Pending"}
        assert notes(cluster) == ["TrainJobResourcesCreationFailed: the ClusterTrainingRuntime rt does not exist"]
        cluster.server.create(CLUSTER_TRAINING_RUNTIMES, runtime())
        await cluster.wait()
        assert cluster.conditions()["ResourcesReady"] == READY


async def test_an_event_should_be_cut_where_the_status_has_the_whole(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        jobs = [{"name": f"{number}-{'x' * 100}"} for number in range(16)]
        patch = {"trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
        cluster.submit(runtimePatches=[{"manager": "acme.io/patch", **patch}])
        await cluster.wait()
        (ready,) = [each for each in cluster.status()["conditions"] if each["type"] == "ResourcesReady"]
        (note,) = (each.removeprefix("TrainJobResourcesCreationFailed: ") for each in notes(cluster))
        assert (len(ready["message"]) > 1600, len(note)) == (True, 1023)
        assert note == ready["message"][:1020] + "..."


async def test_an_unknown_kind_of_runtime_should_fail_the_trainjob(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(kind="Blueprint")
        await cluster.wait(0.05)
        (failed,) = [each for each in cluster.status()["conditions"] if each["type"] == "Failed"]
        assert failed["reason"] == "TrainingRuntimeNotSupported"
        assert failed["message"] == "unsupported runtime: Blueprint.trainer.kubeflow.org"
        assert cluster.server.take() == [STATUS]


async def test_a_jobset_of_somebody_else_should_not_be_written_over(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.server.create(JOBSETS, {"metadata": {"name": "demo", "namespace": "team-a"}, "spec": {"mine": True}})
        await cluster.wait(0.05)
        cluster.submit()
        await cluster.wait()
        assert cluster.conditions()["ResourcesReady"] == "False ApplyRefused"
        assert notes(cluster)[0].endswith("does not control it; another one is made once it is gone")
        assert "apply jobsets" not in cluster.server.take()
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait(61)
        assert cluster.conditions()["ResourcesReady"] == READY


@pytest.mark.parametrize(
    "code, reason, verdict",
    [
        pytest.param(422, "Invalid", "False ApplyRefused", id="refused"),
        pytest.param(403, "Forbidden", "False ApplyRefused", id="forbidden"),
        pytest.param(500, "InternalError", "False ApplyFailed", id="failed"),
    ],
)
async def test_an_error_should_be_told_and_tried_again(
    virtual_clock: VirtualClock, code: int, reason: str, verdict: str
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.server.refuse = refusing("jobsets", api_error(code, reason))
        cluster.submit()
        await cluster.wait(1)
        assert cluster.conditions()["ResourcesReady"] == verdict
        tries = cluster.server.writes().count("apply jobsets")
        await cluster.wait(10)
        if verdict == "False ApplyRefused":
            assert cluster.server.writes().count("apply jobsets") == tries, "it is not tried again soon"
        cluster.server.refuse = lambda call: None
        await cluster.wait(130)
        assert cluster.conditions()["ResourcesReady"] == READY


async def test_a_short_fault_should_not_be_seen_in_the_status(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        faults = [api_error(500, "InternalError")]

        def refuse(call: Call) -> ApiError | None:
            return faults.pop() if faults and call.resource == JOBSETS else None

        cluster.server.refuse = refuse
        cluster.submit()
        await cluster.wait(1)
        assert cluster.server.writes().count(STATUS) == 1
        assert cluster.conditions()["ResourcesReady"] == READY


async def test_a_namespace_that_goes_should_be_left_in_peace(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.server.refuse = refusing("configmaps", api_error(403, "Forbidden", cause="NamespaceTerminating"))
        cluster.submit()
        await cluster.wait(1)
        assert cluster.server.take() == ["create configmaps"]
        assert notes(cluster) == []


async def test_a_label_that_was_taken_away_should_come_back(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(labels={"team": "blue"})
        await cluster.wait()
        cluster.server.change(JOBSETS, "demo", {"metadata": {"labels": {"team": "red"}}})
        await cluster.wait()
        jobset = cluster.server.find(JOBSETS, "demo")
        assert jobset is not None
        assert jobset["metadata"]["labels"]["team"] == "blue"


async def test_nobody_should_be_fought_without_rest(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(labels={"team": "blue"})
        await cluster.wait(1)
        cluster.server.take()
        for _ in range(100):
            cluster.server.change(JOBSETS, "demo", {"metadata": {"labels": {"team": "red"}}})
            await cluster.wait(0.05)
        assert cluster.server.take().count("patch jobsets") <= 7


async def test_a_suspended_trainjob_should_be_applied_once_and_resumed(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(suspend=True)
        await cluster.wait(2)
        assert cluster.server.take() == [*BUILD, STATUS]
        assert (cluster.status()["state"], cluster.conditions()["Suspended"]) == ("Suspended", "True Suspended")
        assert "startTime" not in cluster.status()
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": False}})
        await cluster.wait()
        assert cluster.server.take() == ["apply jobsets", STATUS]
        assert cluster.conditions()["Suspended"] == "False Resumed"


@pytest.mark.parametrize(
    "resource, metadata",
    [
        pytest.param(LIMIT_RANGES, {"name": "limits", "namespace": "team-a"}, id="a LimitRange of its namespace"),
        pytest.param(RUNTIME_CLASSES, {"name": "gvisor"}, id="the RuntimeClass of its runtime"),
    ],
)
async def test_what_decides_on_requests_should_wake_suspended_trainjobs(
    virtual_clock: VirtualClock, resource: Resource, metadata: dict[str, str]
) -> None:
    classed = runtime(job("node", "trainer", pod={"runtimeClassName": "gvisor"}))
    async with training_cluster(virtual_clock, classed) as cluster:
        cluster.server.refuse = refusing("jobsets", api_error(422, "Invalid"))
        cluster.submit(suspend=True)
        await cluster.wait(2)
        assert cluster.conditions()["ResourcesReady"] == "False ApplyRefused"
        cluster.server.refuse = lambda call: None
        await cluster.wait(2)
        assert cluster.conditions()["ResourcesReady"] == "False ApplyRefused", "nothing has happened yet"
        cluster.server.create(resource, {"metadata": metadata})
        await cluster.wait()
        assert cluster.conditions()["ResourcesReady"] == READY


async def test_a_deadline_should_be_stored_before_the_jobset_is_deleted(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(activeDeadlineSeconds=60)
        await cluster.wait(50)
        assert cluster.status()["state"] == "Pending"
        cluster.server.take()
        cluster.server.refuse = lambda call: api_error(500, "InternalError") if call.verb == "delete" else None
        await cluster.wait(12)
        assert cluster.conditions()["Failed"] == "True DeadlineExceeded"
        writes = cluster.server.take()
        assert writes[:2] == [STATUS, "delete jobsets"]
        cluster.server.refuse = lambda call: None
        await cluster.wait(301)
        assert cluster.server.find(JOBSETS, "demo") is None
        assert set(cluster.server.take()) == {"delete jobsets"}


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(api_error(500, "InternalError"), id="failed"),
        pytest.param(api_error(409, "Conflict"), id="in conflict with somebody"),
    ],
)
async def test_a_gang_that_stays_should_hold_up_neither_jobset_nor_time_to_live(
    virtual_clock: VirtualClock, error: ApiError
) -> None:
    async with training_cluster(virtual_clock, runtime(podGroupPolicy={"coscheduling": {}})) as cluster:
        cluster.submit(activeDeadlineSeconds=30, ttlSecondsAfterFinished=100)
        cluster.server.refuse = lambda call: error if str(call) == "delete podgroups" else None
        await cluster.wait(32)
        assert cluster.conditions()["Failed"] == "True DeadlineExceeded"
        assert cluster.server.find(JOBSETS, "demo") is None
        await cluster.wait(90)
        assert cluster.server.writes().count("delete podgroups") > 5
        await cluster.wait(10)
        assert cluster.server.find(TRAINJOBS, "demo") is None


@pytest.mark.parametrize("verb", ["delete jobsets", "delete podgroups"])
async def test_what_could_not_be_deleted_at_a_deadline_should_be_later(virtual_clock: VirtualClock, verb: str) -> None:
    async with training_cluster(virtual_clock, runtime(podGroupPolicy={"coscheduling": {}})) as cluster:
        cluster.submit(activeDeadlineSeconds=30)
        cluster.server.refuse = lambda call: api_error(500, "InternalError") if str(call) == verb else None
        await cluster.wait(32)
        cluster.server.refuse = lambda call: None
        await cluster.wait(60)
        assert cluster.server.find(JOBSETS, "demo") is None
        assert cluster.server.find(COSCHEDULING_POD_GROUPS, "demo") is None


async def test_the_time_to_live_of_the_runtime_should_count_where_the_trainjob_has_none(
    virtual_clock: VirtualClock,
) -> None:
    shared = runtime(runPolicy={"ttlSecondsAfterFinished": 100})
    async with training_cluster(virtual_clock, shared) as cluster:
        cluster.submit("short", ttlSecondsAfterFinished=10)
        cluster.submit("long")
        await cluster.wait()
        for name in ("short", "long"):
            cluster.report(name, end="Completed", succeeded=1)
        await cluster.wait(13)
        assert cluster.server.find(TRAINJOBS, "short") is None
        assert cluster.server.find(TRAINJOBS, "long") is not None
        await cluster.wait(100)
        assert cluster.server.find(TRAINJOBS, "long") is None


async def test_a_gang_should_be_dissolved_at_the_end(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock, runtime(podGroupPolicy={"coscheduling": {}})) as cluster:
        cluster.submit()
        await cluster.wait()
        assert cluster.server.find(COSCHEDULING_POD_GROUPS, "demo") is not None
        cluster.report(end="Completed", succeeded=1)
        await cluster.wait()
        assert cluster.server.find(COSCHEDULING_POD_GROUPS, "demo") is None
        assert cluster.server.writes().count("delete podgroups") == 1


async def test_the_end_of_a_jobset_that_is_gone_should_count(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock, runtime(template={"ttlSecondsAfterFinished": 0})) as cluster:
        cluster.submit()
        await cluster.wait()
        cluster.report(end="Completed", succeeded=1)
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait()
        assert cluster.status()["state"] == "Complete"
        assert cluster.server.find(JOBSETS, "demo") is None


async def test_a_jobset_that_may_have_ended_unseen_should_not_be_built_again(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock, runtime(template={"ttlSecondsAfterFinished": 5})) as cluster:
        cluster.submit()
        await cluster.wait()
        cluster.report(active=1)
        await cluster.wait(2)
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait()
        assert cluster.conditions()["Failed"] == "True JobSetDeleted"


@pytest.mark.parametrize("is_self_deleting", [True, False])
async def test_a_suspension_should_not_make_a_jobset_train_twice(
    virtual_clock: VirtualClock, is_self_deleting: bool
) -> None:
    template = {"ttlSecondsAfterFinished": 0} if is_self_deleting else {}
    async with idle_cluster(virtual_clock, runtime(template=template)) as cluster:
        cluster.submit()
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(1)
            cluster.report(active=1, ready=1)
            await cluster.wait(2)
        cluster.server.remove(JOBSETS, "demo")
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": True}})
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(5)
            failed = cluster.conditions().get("Failed")
            assert failed == ("True JobSetDeleted" if is_self_deleting else None)
            assert (cluster.server.find(JOBSETS, "demo") is None) == is_self_deleting


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_jobset_that_was_held_should_be_built_again(virtual_clock: VirtualClock, is_told: bool) -> None:
    async with training_cluster(virtual_clock, runtime(template={"ttlSecondsAfterFinished": 0})) as cluster:
        cluster.submit()
        await cluster.wait(1)
        cluster.report(active=1, ready=1)
        await cluster.wait(2)
        if not is_told:
            cluster.server.refuse = lambda call: api_error(500, "InternalError") if str(call) == STATUS else None
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"suspend": True}})
        await cluster.wait(1)
        assert cluster.status()["state"] == ("Suspended" if is_told else "Running")
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait(1)
        cluster.server.refuse = lambda call: None
        await cluster.wait(60)
        jobset = cluster.server.find(JOBSETS, "demo")
        assert jobset is not None
        assert (jobset["spec"]["suspend"], cluster.status()["state"]) == (True, "Suspended")


async def test_any_other_jobset_that_vanishes_should_be_built_again(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait()
        cluster.report(active=1)
        await cluster.wait(2)
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait()
        assert cluster.server.find(JOBSETS, "demo") is not None


async def test_a_finished_trainjob_should_never_get_its_children_back(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait()
        cluster.report(end="Failed", failed=1)
        await cluster.wait()
        cluster.server.take()
        cluster.server.remove(JOBSETS, "demo")
        cluster.server.remove(CONFIG_MAPS, "demo-runtime-snapshot")
        await cluster.wait(90)
        assert cluster.server.take() == []
        assert cluster.status()["state"] == "Failed"


def report_mpi(cluster: TrainingCluster, *, nodes: int, is_over: bool) -> None:
    """Let the JobSet controller report of a launcher and its nodes, which it stops once the launcher is done."""
    none = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
    launcher = {"name": "launcher", **none, "active": int(not is_over), "succeeded": int(is_over)}
    cluster.report(active=nodes, ready=nodes, end="Completed" if is_over else "")
    jobset = cluster.server.find(JOBSETS, "demo")
    assert jobset is not None
    jobs = [launcher, *jobset["status"]["replicatedJobsStatus"]]
    cluster.server.change(JOBSETS, "demo", {"status": {"replicatedJobsStatus": jobs}})


async def test_jobs_that_are_stopped_after_the_end_should_be_told(virtual_clock: VirtualClock) -> None:
    mpi = runtime(job("launcher", "trainer"), job("node", None), mlPolicy={"numNodes": 2, "mpi": {}})
    async with training_cluster(virtual_clock, mpi) as cluster:
        cluster.submit()
        await cluster.wait(1)
        report_mpi(cluster, nodes=1, is_over=False)
        await cluster.wait(3)
        report_mpi(cluster, nodes=1, is_over=True)
        await cluster.wait(2)
        before = cluster.status()
        assert (before["state"], before["jobsStatus"][1]["active"]) == ("Complete", 1)
        cluster.server.take()
        report_mpi(cluster, nodes=0, is_over=True)
        await cluster.wait(2)
        assert [(each["name"], each["active"], each["ready"]) for each in cluster.status()["jobsStatus"]] == [
            ("launcher", 0, 0),
            ("node", 0, 0),
        ]
        assert {**cluster.status(), "jobsStatus": 0} == {**before, "jobsStatus": 0}
        assert cluster.server.take() == [STATUS]
        cluster.server.remove(JOBSETS, "demo")
        await cluster.wait(90)
        assert (cluster.server.take(), cluster.status()["state"]) == ([], "Complete")


async def test_a_change_after_the_end_should_count_as_seen(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait(1)
        cluster.report(end="Completed", succeeded=1)
        await cluster.wait(2)
        before = cluster.status()
        cluster.server.take()
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"ttlSecondsAfterFinished": 90}})
        await cluster.wait(60)
        assert cluster.status() == {**before, "observedGeneration": 2}
        assert cluster.server.take() == [STATUS]
        await cluster.wait(40)
        assert cluster.server.find(TRAINJOBS, "demo") is None


async def test_a_snapshot_of_the_original_should_be_kept(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait()
        snapshot = cluster.server.find(CONFIG_MAPS, "demo-runtime-snapshot")
        assert snapshot is not None
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit("first")
        trainjob = cluster.server.find(TRAINJOBS, "first")
        assert trainjob is not None
        owner = {**snapshot["metadata"]["ownerReferences"][0], "name": "first", "uid": trainjob["metadata"]["uid"]}
        text = snapshot["data"]["runtime"].replace("img/node:1", "img/node:old")
        metadata = {"name": "first-runtime-snapshot", "namespace": "team-a", "ownerReferences": [owner]}
        cluster.server.create(CONFIG_MAPS, {"metadata": metadata, "data": {"runtime": text}})
        await cluster.wait()
        jobset = cluster.server.find(JOBSETS, "first")
        assert jobset is not None
        pods = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        assert pods["containers"][0]["image"] == "img/node:old"


async def test_a_lost_snapshot_of_a_changed_runtime_should_be_told(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait()
        changed = runtime(job("node", "trainer", container(image="img/new")))
        cluster.server.change(CLUSTER_TRAINING_RUNTIMES, "rt", {"spec": changed["spec"]})
        cluster.server.remove(CONFIG_MAPS, "demo-runtime-snapshot")
        await cluster.wait()
        assert cluster.server.find(CONFIG_MAPS, "demo-runtime-snapshot") is not None
        assert [note.partition(":")[0] for note in notes(cluster)] == ["RuntimeSnapshotLost"]
        assert cluster.conditions()["ResourcesReady"] == READY


async def test_a_trainjob_of_another_controller_should_be_left_alone(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(managedBy="kueue.x-k8s.io/multikueue")
        await cluster.wait(5)
        assert cluster.server.take() == []


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"trainer": {"numNodes": "two"}}, id="of a wrong type"),
        # Where exactly a decoder gives up depends on who calls it.
        *(
            pytest.param({"labels": orjson.Fragment(b"[" * depth + b"]" * depth)}, id=f"{depth} deep")
            for depth in (900, 960, 990, 2000)
        ),
        pytest.param({"podTemplateOverrides": [{"targetJobs": [], "spec": {"affinity": DEEP}}]}, id="deep in a pod"),
    ],
)
async def test_a_malformed_trainjob_should_be_told_why_and_disturb_nobody(
    virtual_clock: VirtualClock, spec: dict[str, Any]
) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit("odd", **spec)
        cluster.submit("fine")
        await cluster.wait()
        assert cluster.conditions("odd")["ResourcesReady"] == "False ValidationRejected"
        assert cluster.conditions("fine")["ResourcesReady"] == READY


async def test_what_the_original_has_finished_should_get_its_state(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit(suspend=True, managedBy="kueue.x-k8s.io/multikueue")
        end = {"type": "Complete", "status": "True", "reason": "R", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        cluster.server.apply_status("demo", "original", {"conditions": [end]})
        cluster.server.change(TRAINJOBS, "demo", {"spec": {"managedBy": None, "suspend": False}})
        await cluster.wait()
        assert (cluster.status()["state"], cluster.status()["completionTime"]) == ("Complete", "2026-01-01T00:00:00Z")
        assert cluster.server.take() == [STATUS]


async def test_a_controller_that_starts_anew_should_find_nothing_to_do(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit("held", suspend=True)
        cluster.submit("running")
        cluster.submit("done")
        await cluster.wait()
        cluster.report("running", active=1, ready=1)
        cluster.report("done", end="Completed", succeeded=1)
        await cluster.wait(2)
        cluster.server.take()
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(2)
            assert cluster.server.take() == []


async def test_the_conditions_of_what_runs_should_come_and_go_with_their_gate(virtual_clock: VirtualClock) -> None:
    async with idle_cluster(virtual_clock) as cluster:
        cluster.submit()
        async with controller(cluster.server, virtual_clock):
            await cluster.wait(1)
            cluster.report(active=1, ready=1)
            await cluster.wait(1)
        for is_open in (True, False):
            cluster.server.take()
            async with controller(cluster.server, virtual_clock, ConditionsWhileRunning=is_open):
                await cluster.wait(1)
            assert cluster.server.take() == [STATUS]
            full = {"ResourcesReady": READY, "Running": "True NodesReady"}
            assert (cluster.status()["state"], cluster.conditions()) == ("Running", full if is_open else {})


async def test_what_stops_running_should_have_all_its_conditions_again(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        cluster.submit()
        await cluster.wait(1)
        cluster.report(active=1, ready=1)
        await cluster.wait(1)
        assert cluster.conditions() == {}
        cluster.report(active=1)
        await cluster.wait(1)
        assert cluster.conditions() == {"ResourcesReady": READY, "Running": "False Pending"}
        cluster.server.take()
        cluster.report(active=1, ready=1)
        await cluster.wait(1)
        assert (cluster.server.take(), cluster.conditions()) == ([STATUS], {})


async def test_in_a_crowd_a_change_should_wait_for_the_end(virtual_clock: VirtualClock) -> None:
    async with training_cluster(virtual_clock) as cluster:
        names = [f"job{number}" for number in range(60)]
        for name in names:
            cluster.submit(name)
        await cluster.wait(0.4)
        assert STATUS not in cluster.server.take()
        for name in names:
            cluster.report(name, end="Completed", succeeded=1)
        await cluster.wait(2)
        assert cluster.server.take() == [STATUS] * 60
