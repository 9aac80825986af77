from typing import Any

from ktrainer.api.trainjob import TrainJob
from ktrainer.app.documents import run_now
from ktrainer.framework.component import Component, Write
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.plugins.jobset.plugin import JobSet
from support.training import UID, dependencies, info_of, job, runtime, trainjob

ELASTIC = runtime(mlPolicy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 5}}})


def written(
    wanted: TrainJob, present: dict[str, Any] | None = None, value: dict[str, Any] | None = None
) -> list[Component]:
    info = info_of(value, wanted)
    plugin = JobSet(dependencies(*([present] if present else [])))
    plugin.enforce_pod_spec(info, wanted)
    plugin.pre_build(info, wanted)
    return run_now(plugin.build(info, wanted))


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
    change = {"name": "node", "template": {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}}
    spec = {"template": {"spec": {"replicatedJobs": [change]}}}
    patched: dict[str, Any] = {"runtimePatches": [{"manager": "a.io/b", "trainingRuntimeSpec": spec}]}
    stopping, stopped = present(suspend=True, active=1), present(suspend=True)
    for suspend in (True, False):
        assert written(trainjob(suspend=suspend, **patched), stopping) == []
        (component,) = written(trainjob(suspend=suspend, **patched), stopped)
        assert component.write is Write.APPLY
        template = component.body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
        assert template["spec"]["nodeSelector"] == {"a": "b"}
        assert component.body["spec"]["suspend"] is suspend


def test_an_elastic_job_should_be_rescaled_in_place() -> None:
    there = present(suspend=False, active=1, value=ELASTIC)
    info_counts = trainjob(trainer={"numNodes": 4})
    info = info_of(ELASTIC, info_counts)
    assert info.sized is not None
    info.sized.count = 4
    plugin = JobSet(dependencies(there))
    plugin.pre_build(info, info_counts)
    (component,) = run_now(plugin.build(info, info_counts))
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
