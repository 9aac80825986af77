from typing import Any

import pytest

from ktrainer.api.trainjob import TrainJob
from ktrainer.app.documents import run_now
from ktrainer.app.training import build_training
from ktrainer.framework.component import Write
from ktrainer.framework.findings import Findings
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.runtime.errors import Rejected, RuntimeNotFound, SnapshotInvalid
from ktrainer.runtime.plan import Plan
from ktrainer.runtime.runtime import Runtime
from support.laggingcluster import Cluster
from support.training import as_trainjob, initializer, job, runtime, trainjob, trainjob_json

J = dict[str, Any]
TORCH = runtime(mlPolicy={"numNodes": 2, "torch": {}})


def runtime_of(cluster: Cluster, wanted: TrainJob) -> Runtime:
    return build_training(cluster.dependencies).of(wanted.spec.runtime_ref)


def plan(cluster: Cluster, wanted: TrainJob) -> Plan:
    return run_now(runtime_of(cluster, wanted).plan(wanted))


def judge(cluster: Cluster, new: TrainJob, old: TrainJob | None = None) -> Findings:
    return run_now(runtime_of(cluster, new).validate(old, new))


def snapshot(wanted: TrainJob, value: J = TORCH, **changes: Any) -> J:
    body = copy_of(plan(Cluster(value), wanted).components[0].body)
    return {**body, **changes}


def versioned(value: J, version: str) -> J:
    return {
        **value,
        "metadata": {**value["metadata"], "uid": f"{value['metadata']['name']}-uid", "resourceVersion": version},
    }


def test_a_plan_should_begin_with_the_snapshot() -> None:
    made = plan(Cluster(TORCH), wanted := trainjob(trainer={"numNodes": 3}))
    assert [component.body["kind"] for component in made.components] == ["ConfigMap", "JobSet"]
    assert made.components[0].write is Write.CREATE
    assert (made.sized_job, made.nodes, made.warnings) == ("node", 3, [])
    assert made.runtime_digest.startswith("sha256:")
    assert plan(Cluster(TORCH), wanted).components == made.components


def test_a_namespaced_runtime_should_be_looked_up_in_the_trainjobs_namespace() -> None:
    wanted = trainjob(kind="TrainingRuntime")
    assert plan(Cluster(runtime(kind="TrainingRuntime")), wanted).sized_job == "node"
    elsewhere = runtime(kind="TrainingRuntime")
    elsewhere["metadata"]["namespace"] = "team-b"
    with pytest.raises(RuntimeNotFound, match="the TrainingRuntime rt does not exist"):
        plan(Cluster(elsewhere), wanted)


def test_a_missing_runtime_should_be_named_after_a_live_look() -> None:
    cluster = Cluster()
    with pytest.raises(RuntimeNotFound, match="the ClusterTrainingRuntime rt does not exist"):
        plan(cluster, trainjob())
    assert "ClusterTrainingRuntime/rt" in cluster.live_reads


def test_a_job_that_has_a_snapshot_should_go_by_it() -> None:
    wanted = trainjob(trainer={})
    kept = snapshot(wanted)
    changed = runtime(mlPolicy={"numNodes": 7, "jax": {}})
    for cluster in (Cluster(kept), Cluster(kept, changed)):
        made = plan(cluster, wanted)
        assert made.nodes == 2
        assert [component.body["kind"] for component in made.components] == ["JobSet"]


def test_a_snapshot_that_no_cache_has_should_be_found_live() -> None:
    wanted = trainjob(trainer={})
    made = plan(Cluster(snapshot(wanted), TORCH, cached=[TORCH]), wanted)
    assert [component.body["kind"] for component in made.components] == ["JobSet"]


def test_a_snapshot_that_cannot_be_trusted_should_stop_everything() -> None:
    wanted = trainjob(trainer={})
    for kept in (
        snapshot(wanted, data={}),
        snapshot(wanted, metadata={"name": "demo-runtime-snapshot", "namespace": "team-a"}),
    ):
        with pytest.raises(SnapshotInvalid, match=r"^invalid runtime snapshot: "):
            plan(Cluster(kept, TORCH), wanted)


def test_a_snapshot_that_is_refused_should_be_refused_alike_each_time() -> None:
    wanted = trainjob(trainer={})
    kept = snapshot(wanted, data={"runtime": "a: " + "[" * 100_000})
    asked = runtime_of(Cluster(kept, TORCH), wanted)
    for _ in range(2):
        with pytest.raises(SnapshotInvalid, match=r"^invalid runtime snapshot: it is not YAML: nested more than"):
            run_now(asked.plan(wanted))


def test_a_lost_snapshot_should_be_written_again_with_a_warning_if_the_runtime_has_changed() -> None:
    digest = plan(Cluster(TORCH), trainjob()).runtime_digest
    started = as_trainjob({**trainjob_json(), "status": {"runtimeDigest": digest}})
    assert plan(Cluster(TORCH), started).warnings == []
    made = plan(Cluster(runtime(mlPolicy={"numNodes": 7, "torch": {}})), started)
    assert made.components[0].name == "demo-runtime-snapshot"
    assert made.warnings == ["the snapshot of the runtime was lost, and the runtime has changed since"]


def test_a_parsed_runtime_should_be_remembered_by_version_and_by_digest() -> None:
    wanted = trainjob(trainer={})
    cluster = Cluster(versioned(TORCH, "1"))
    made = runtime_of(cluster, wanted)
    first = run_now(made.plan(wanted))
    assert run_now(made.plan(wanted)) == first
    again = runtime_of(Cluster(snapshot(wanted)), wanted)
    for _ in range(300):
        assert run_now(again.plan(wanted)).runtime_digest == first.runtime_digest


def test_what_admission_did_not_see_should_be_rejected_before_anything_is_built() -> None:
    wanted = trainjob(trainer={"env": [{"name": "PET_NNODES", "value": "1"}]})
    with pytest.raises(Rejected, match=r"^spec\.trainer\.env: Invalid value") as rejected:
        plan(Cluster(TORCH), wanted)
    assert [str(error.path) for error in rejected.value.findings.errors] == ["spec.trainer.env"]


def test_a_malformed_runtime_should_be_a_finding_about_the_reference() -> None:
    broken = runtime(job("node", "trainer", {"image": "x"}))
    with pytest.raises(Rejected, match=r"spec\.runtimeRef: .* malformed: spec\.template\.spec\.replicatedJobs\[0\]"):
        plan(Cluster(broken), trainjob())
    findings = judge(Cluster(broken), trainjob())
    assert [str(error.path) for error in findings.errors] == ["spec.runtimeRef"]


def test_all_findings_should_come_at_once() -> None:
    wanted = trainjob(
        trainer={"env": [{"name": "PET_NNODES", "value": "1"}]},
        initializer={"dataset": {}},
        podTemplateOverrides=[{"targetJobs": [{"name": "ghost"}]}],
        runtimePatches=[{"manager": "nodomain"}],
    )
    paths = [str(error.path) for error in judge(Cluster(TORCH), wanted).errors]
    assert paths == ["spec.podTemplateOverrides", "spec.trainer.env", "spec.runtimeRef", "spec.runtimePatches.manager"]


def test_too_few_processes_should_be_told_with_the_other_findings() -> None:
    wanted = trainjob(
        trainer={"numProcPerNode": 0, "env": [{"name": "PET_NNODES", "value": "1"}]},
        runtimePatches=[{"manager": "nodomain"}],
    )
    paths = [str(error.path) for error in judge(Cluster(TORCH), wanted).errors]
    assert paths == ["spec.trainer.numProcPerNode", "spec.trainer.env", "spec.runtimePatches.manager"]
    with pytest.raises(Rejected):
        plan(Cluster(TORCH), wanted)


def test_parts_that_plugins_cannot_read_should_be_told_first() -> None:
    wanted = trainjob(trainer={"env": [{"value": "1"}]}, initializer={"dataset": {}})
    assert [str(error.path) for error in judge(Cluster(TORCH), wanted).errors] == ["spec.trainer.env[0].name"]
    with pytest.raises(Rejected):
        plan(Cluster(TORCH), wanted)


def test_a_change_that_does_not_fit_should_be_told_with_the_other_findings() -> None:
    template = {"spec": {"replicatedJobs": [
        {"name": "node", "template": {"spec": {"template": {"spec": {"volumes": [{"emptyDir": {}}]}}}}}
    ]}}  # fmt: skip
    wanted = trainjob(runtimePatches=[{"manager": "a.io/b", "trainingRuntimeSpec": {"template": template}}],
                      initializer={"model": {}})  # fmt: skip
    paths = [str(error.path) for error in judge(Cluster(TORCH), wanted).errors]
    assert paths == ["spec.runtimePatches", "spec.runtimeRef"]


def test_a_missing_runtime_should_be_refused_at_admission() -> None:
    findings = judge(Cluster(), trainjob())
    assert [(error.kind.name, str(error.path)) for error in findings.errors] == [("INVALID", "spec.runtimeRef")]


def test_admission_should_see_a_runtime_that_no_cache_has_yet() -> None:
    assert judge(Cluster(TORCH, cached=[]), trainjob()).errors == []


def test_admission_should_not_refuse_on_a_stale_view() -> None:
    wanted = trainjob(initializer={"dataset": {}})
    fixed = runtime(job(), initializer("dataset-initializer"))
    old, new = versioned(runtime(), "1"), versioned(fixed, "2")
    assert judge(Cluster(new, cached=[old]), wanted).errors == []
    assert len(judge(Cluster(old, cached=[new]), wanted).errors) == 0
    assert len(judge(Cluster(old), wanted).errors) == 1
    assert len(judge(Cluster(cached=[old]), wanted).errors) == 1


def test_an_update_should_be_judged_by_the_snapshot() -> None:
    old, new = trainjob(trainer={}), trainjob(trainer={}, suspend=True)
    assert judge(Cluster(snapshot(old)), new, old).errors == []
    assert len(judge(Cluster(), new, old).errors) == 1


def test_an_update_should_fall_back_to_the_runtime_where_the_snapshot_is_invalid() -> None:
    old = trainjob(trainer={})
    assert judge(Cluster(snapshot(old, data={}), TORCH), old, old).errors == []


def test_a_trainjob_that_is_being_deleted_should_never_be_refused() -> None:
    value = trainjob_json(trainer={"env": [{"name": "PET_NNODES", "value": "1"}]})
    value["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    leaving = as_trainjob(value)
    assert judge(Cluster(), leaving, leaving) == Findings()


def test_a_deprecated_runtime_should_be_warned_of() -> None:
    old = copy_of(TORCH)
    old["metadata"]["labels"] = {"trainer.kubeflow.org/support": "deprecated"}
    findings = judge(Cluster(old), trainjob())
    assert findings.errors == []
    assert findings.warnings == ["the ClusterTrainingRuntime rt is deprecated, and will be removed"]


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"gpu": "yes"}}}


@pytest.mark.parametrize(("label", "refused"), [("yes", False), ("no", True)])
def test_a_runtime_should_serve_only_the_namespaces_that_it_allows(label: str, refused: bool) -> None:
    only = runtime(allowedNamespaces={"matchLabels": {"gpu": label}})
    findings = judge(Cluster(only, NAMESPACE), wanted := trainjob())
    assert [str(error.path) for error in findings.errors] == ["spec.runtimeRef"] * refused
    if refused:
        with pytest.raises(Rejected, match="not for TrainJobs of the namespace team-a"):
            plan(Cluster(only, NAMESPACE), wanted)
    else:
        assert plan(Cluster(only, NAMESPACE), wanted).nodes == 1


def test_a_job_that_has_started_should_outlive_a_change_of_its_namespace() -> None:
    only = runtime(allowedNamespaces={"matchLabels": {"gpu": "yes"}})
    kept = copy_of(plan(Cluster(only, NAMESPACE), wanted := trainjob()).components[0].body)
    other = {**NAMESPACE, "metadata": {"name": "team-a"}}
    assert plan(Cluster(kept, only, other), wanted).nodes == 1
    assert judge(Cluster(kept, only, other), wanted, wanted).errors == []


def test_a_namespace_that_nobody_knows_should_be_warned_of() -> None:
    findings = judge(Cluster(runtime(allowedNamespaces={})), trainjob())
    assert findings.errors == []
    assert findings.warnings == ["it is not known whether the namespace team-a may use rt"]


@pytest.mark.parametrize("labels", ["gpu", ["gpu"], 1, None])
def test_a_namespace_whose_labels_are_none_should_have_none(labels: Any) -> None:
    only = runtime(allowedNamespaces={"matchLabels": {"gpu": "yes"}})
    odd = {**NAMESPACE, "metadata": {"name": "team-a", "labels": labels}}
    assert [str(error.path) for error in judge(Cluster(only, odd), trainjob()).errors] == ["spec.runtimeRef"]


def test_the_run_policy_should_come_from_the_runtime_and_be_empty_without_one() -> None:
    wanted = trainjob()
    value = runtime(runPolicy={"activeDeadlineSeconds": 9, "ttlSecondsAfterFinished": 0})
    policy = run_now(runtime_of(Cluster(value), wanted).run_policy(wanted))
    assert (policy.active_deadline_seconds, policy.ttl_seconds_after_finished) == (9, 0)
    assert plan(Cluster(value), wanted).run_policy == policy
    none = run_now(runtime_of(Cluster(), wanted).run_policy(wanted))
    assert (none.active_deadline_seconds, none.ttl_seconds_after_finished) == (None, None)


def test_status_and_watches_should_be_the_frameworks() -> None:
    wanted = trainjob()
    made = runtime_of(Cluster(TORCH), wanted)
    assert run_now(made.status(wanted)) is None
    kinds = [(watch.resource.kind, watch.resource.group, watch.labelled, watch.optional) for watch in made.watches()]
    assert kinds == [
        ("ConfigMap", "", True, False),
        ("Secret", "", True, False),
        ("PodGroup", "scheduling.x-k8s.io", False, True),
        ("LimitRange", "", False, False),
        ("RuntimeClass", "node.k8s.io", False, False),
        ("PodGroup", "scheduling.volcano.sh", False, True),
        ("JobSet", "jobset.x-k8s.io", False, False),
    ]


def test_a_runtime_without_a_trainer_should_have_no_sized_job() -> None:
    made = plan(Cluster(runtime(job("aux", None))), trainjob())
    assert (made.sized_job, made.nodes) == (None, 0)


def test_an_elastic_job_should_be_planned_with_its_autoscaler() -> None:
    metric = {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 8}},
    }
    value = runtime(mlPolicy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4, "metrics": [metric]}}})
    made = plan(Cluster(value), trainjob(trainer={"numNodes": 3}))
    assert [component.body["kind"] for component in made.components] == [
        "ConfigMap",
        "HorizontalPodAutoscaler",
        "JobSet",
    ]
    assert made.nodes == 3
    with pytest.raises(Rejected, match=r"spec\.trainer\.numNodes: .* 2 to 4 nodes"):
        plan(Cluster(value), trainjob(trainer={"numNodes": 5}))


def test_an_elastic_job_that_has_begun_should_keep_within_its_bounds_by_itself() -> None:
    value = runtime(mlPolicy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}})
    begun = snapshot(trainjob(trainer={"numNodes": 3}), value)
    outside = trainjob(trainer={"numNodes": 9}, suspend=True)
    made = plan(Cluster(begun), outside)
    assert (made.nodes, made.components[0].body["spec"]["suspend"]) == (2, True)
    refused = judge(Cluster(begun), outside, trainjob(trainer={"numNodes": 3}))
    assert [str(error.path) for error in refused.errors] == ["spec.trainer.numNodes"]
