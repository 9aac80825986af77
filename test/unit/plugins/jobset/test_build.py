from typing import Any

import pytest

from ktrainer.api.trainjob import TrainJob
from ktrainer.api.trainjobstatus import ConditionType
from ktrainer.app.documents import run_now
from ktrainer.framework.component import Component, Write
from ktrainer.framework.info import Info
from ktrainer.kube.conditions import Condition
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.plugins.jobset.held import HAS_RUN
from ktrainer.plugins.jobset.plugin import JobSet
from support.training import UID, dependencies, info_of, job, runtime, trainjob

READY = ConditionType.RESOURCES_READY
ELASTIC = runtime(mlPolicy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 5}}})


def written(
    wanted: TrainJob, present: dict[str, Any] | None = None, value: dict[str, Any] | None = None
) -> list[Component]:
    return planned(wanted, present, value)[0]


def planned(
    wanted: TrainJob, present: dict[str, Any] | None = None, value: dict[str, Any] | None = None
) -> tuple[list[Component], Info]:
    """What is written, and the Info that may tell of more."""
    info = info_of(value, wanted)
    plugin = JobSet(dependencies(*([present] if present else [])))
    plugin.enforce_pod_spec(info, wanted)
    plugin.pre_build(info, wanted)
    return run_now(plugin.build(info, wanted)), info


def patched(**pods: Any) -> dict[str, Any]:
    """The part of a TrainJob's spec that changes the pods of the job `node`."""
    change = {"name": "node", "template": {"spec": {"template": {"spec": pods}}}}
    spec = {"template": {"spec": {"replicatedJobs": [change]}}}
    return {"runtimePatches": [{"manager": "a.io/b", "trainingRuntimeSpec": spec}]}


def present(*, suspend: bool, active: int = 0, value: dict[str, Any] | None = None, **metadata: Any) -> dict[str, Any]:
    """The JobSet that was built before, as an API server has it."""
    (component,) = written(trainjob(suspend=suspend), value=value)
    jobset = copy_of(component.body)
    jobset["metadata"] |= {"resourceVersion": "7", **metadata}
    jobset["status"] = {"replicatedJobsStatus": [{"name": "node", "active": active}]}
    return dict(jobset)


def test_a_jobset_should_be_named_owned_and_labelled() -> None:
    value = runtime()
    value["spec"]["template"]["metadata"] = {"labels": {"team": "ml"}, "annotations": {"n": "1"}}
    (component,) = written(trainjob(labels={"user": "me"}, annotations={"n": "2"}), value=value)
    assert component.write is Write.APPLY
    assert component.body["metadata"] == {
        "name": "demo",
        "namespace": "team-a",
        "labels": {"team": "ml", "user": "me", "trainer.kubeflow.org/trainjob-name": "demo"},
        "annotations": {"n": "2"},
        "ownerReferences": [
            {
                "apiVersion": "trainer.kubeflow.org/v1alpha1",
                "kind": "TrainJob",
                "name": "demo",
                "uid": UID,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }


def test_counts_should_become_parallelism_and_completions_and_known_jobs_have_one_replica() -> None:
    jobs = [job("aux", None, replicas=2), job("other", "unknown", replicas=3), job("node", replicas=4)]
    del jobs[2]["replicas"]
    value = runtime(*jobs, mlPolicy={"numNodes": 3})
    (component,) = written(trainjob(), value=value)
    made = component.body["spec"]["replicatedJobs"]
    assert [each["replicas"] for each in made] == [2, 3, 1]
    specs = [each["template"]["spec"] for each in made]
    assert [(each["parallelism"], each["completions"]) for each in specs] == [(1, 1), (1, 1), (3, 3)]


def test_suspension_should_be_mirrored() -> None:
    assert [written(trainjob(suspend=each))[0].body["spec"]["suspend"] for each in (True, False)] == [True, False]


def test_a_jobset_that_runs_should_be_left_alone() -> None:
    assert written(trainjob(), present(suspend=False, active=1)) == []
    assert written(trainjob(trainer={"image": "new:1"}), present(suspend=False, active=1)) == []


def test_labels_and_annotations_should_flow_to_a_jobset_that_runs() -> None:
    there = present(suspend=False, annotations={"by": "others", "mine": "1"})
    wanted = trainjob(labels={"a": "1"}, annotations={"mine": "2"}, trainer={"image": "new:1"})
    (component,) = written(wanted, there)
    assert component.write is Write.PATCH
    assert component.body["metadata"] == {
        "name": "demo",
        "namespace": "team-a",
        "resourceVersion": "7",
        "labels": {"a": "1"},
        "annotations": {"mine": "2"},
    }
    assert "spec" not in component.body


def test_suspending_should_not_touch_the_pod_templates_while_pods_run() -> None:
    (component,) = written(trainjob(suspend=True, trainer={"image": "new:1"}), present(suspend=False, active=1))
    assert component.write is Write.PATCH
    assert component.body["spec"] == {"suspend": True}


def test_changes_should_wait_until_the_last_pod_has_stopped() -> None:
    change = patched(nodeSelector={"a": "b"})
    stopping, stopped = present(suspend=True, active=1), present(suspend=True)
    for suspend in (True, False):
        assert written(trainjob(suspend=suspend, **change), stopping) == []
        (component,) = written(trainjob(suspend=suspend, **change), stopped)
        assert component.write is Write.APPLY
        template = component.body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        assert template["spec"]["nodeSelector"] == {"a": "b"}
        assert component.body["spec"]["suspend"] is suspend


WAITING = "these changes wait until the last pod of the JobSet has stopped: spec."
NODE_SELECTOR = "replicatedJobs[node].template.spec.template.spec.nodeSelector"


@pytest.mark.parametrize(
    "there, wanted, waits_for",
    [
        pytest.param(
            {"suspend": True}, {"suspend": True, **patched(nodeSelector={"a": "b"})}, NODE_SELECTOR, id="a change"
        ),
        pytest.param({"suspend": True}, {"suspend": False}, "suspend", id="a resume"),
        pytest.param(
            {"suspend": False},
            {"suspend": True, **patched(nodeSelector={"a": "b"})},
            NODE_SELECTOR,
            id="a change with the suspension",
        ),
        pytest.param({"suspend": False}, {"suspend": True}, None, id="a suspension alone"),
        pytest.param({"suspend": True}, {"suspend": True}, None, id="nothing"),
        pytest.param({"suspend": False}, patched(nodeSelector={"a": "b"}), None, id="a change of what shall run on"),
    ],
)
def test_what_waits_until_the_last_pod_has_stopped_should_be_told(
    there: dict[str, Any], wanted: dict[str, Any], waits_for: str | None
) -> None:
    _, info = planned(trainjob(**wanted), present(**there, active=1))
    assert info.waits_for == (f"{WAITING}{waits_for}" if waits_for else "")


def test_what_waits_should_be_told_although_it_takes_something_away() -> None:
    there = present(suspend=True, active=1)
    there["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"a": "b"}
    assert planned(trainjob(suspend=True), there)[1].waits_for == f"{WAITING}{NODE_SELECTOR}"


def test_nothing_should_wait_for_pods_that_have_stopped() -> None:
    assert (
        planned(trainjob(suspend=False, **patched(nodeSelector={"a": "b"})), present(suspend=True))[1].waits_for == ""
    )


@pytest.mark.parametrize(
    "reason, message, is_told",
    [
        pytest.param("ApplyRefused", f"{HAS_RUN} spec.x: 422", True, id="refused"),
        pytest.param("ApplyRefused", "the quota is exceeded", False, id="refused for another reason"),
        pytest.param("ApplyFailed", f"{HAS_RUN} spec.x: 422", False, id="not refused"),
    ],
)
def test_what_a_jobset_did_not_take_should_be_told_while_it_runs_without_it(
    reason: str, message: str, is_told: bool
) -> None:
    change = patched(affinity={"podAffinity": {}}, priorityClassName="high")
    for wanted in (trainjob(**change), trainjob()):
        wanted.status.conditions.append(Condition(READY, "False", reason, message))
        components, info = planned(wanted, present(suspend=False, active=1))
        assert components == []
        assert info.refused == (message if is_told and wanted.spec.runtime_patches else "")


def resized(nodes: int, there: dict[str, Any], **spec: Any) -> list[Component]:
    """What is written for an elastic TrainJob of so many nodes."""
    wanted = trainjob(trainer={"numNodes": nodes}, **spec)
    info = info_of(ELASTIC, wanted)
    assert info.sized is not None
    info.sized.count = nodes
    plugin = JobSet(dependencies(there))
    plugin.pre_build(info, wanted)
    return run_now(plugin.build(info, wanted))


def test_a_suspension_should_not_depend_on_a_number_of_nodes_that_may_be_refused() -> None:
    (component,) = resized(4, present(suspend=False, active=1, value=ELASTIC), suspend=True, labels={"a": "1"})
    assert component.body["spec"] == {"suspend": True}
    assert component.body["metadata"]["labels"] == {"a": "1"}
    assert resized(4, present(suspend=True, active=1, value=ELASTIC), suspend=True) == []


def test_labels_should_not_depend_on_a_number_of_nodes_that_may_be_refused() -> None:
    there = present(suspend=False, active=1, value=ELASTIC)
    (component,) = resized(4, there, labels={"a": "1"})
    assert "spec" not in component.body
    there["metadata"]["labels"]["a"] = "1"
    (component,) = resized(4, there, labels={"a": "1"})
    assert "replicatedJobs" in component.body["spec"]


def test_an_elastic_job_should_be_rescaled_in_place() -> None:
    there = present(suspend=False, active=1, value=ELASTIC)
    (component,) = resized(4, there)
    assert component.write is Write.PATCH
    (rescaled,) = component.body["spec"]["replicatedJobs"]
    wanted = copy_of(there["spec"]["replicatedJobs"][0])
    wanted["template"]["spec"] |= {"parallelism": 4, "completions": 4}
    assert rescaled == wanted
    assert there["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] != 4


def test_a_job_that_is_not_elastic_should_not_be_rescaled() -> None:
    assert written(trainjob(trainer={"numNodes": 9}), present(suspend=False, active=1)) == []


def test_the_gangs_marks_should_go_on_its_own_pods() -> None:
    late = job("late", None, dependsOn=[{"name": "node", "status": "Ready"}])
    info = info_of(runtime(job(), late))
    info.trainer.pod_template["metadata"] = {"labels": {"own": "1"}}  # type: ignore[union-attr]
    info.pod_labels, info.pod_annotations = {"l": "1"}, {"a": "1"}
    JobSet(dependencies()).enforce_pod_spec(info, trainjob())
    node, outside = (pods.pod_template.get("metadata") for pods in info.pod_sets)
    assert node == {"labels": {"own": "1", "l": "1"}, "annotations": {"a": "1"}}
    assert outside is None
