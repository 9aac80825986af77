from typing import Any

from ktrainer.app.documents import Document, DocumentReader, run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.render import PLACEHOLDER_UID, Rendering, render, validate
from ktrainer.app.training import build_training
from ktrainer.framework.dependencies import Dependencies
from ktrainer.kube.jsonvalue import copy_of
from support.training import container, dependencies, job, runtime, trainjob_json

J = dict[str, Any]
TORCH = runtime(mlPolicy={"torch": {}})


def work(command: Any, *values: J) -> Rendering:
    documents = [Document("f", number, value) for number, value in enumerate(values, 1)]
    reader = DocumentReader(documents, "team-a")
    given = Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys)
    made: Rendering = run_now(command(documents, build_training(given), "team-a"))
    return made


def test_objects_should_come_job_by_job_and_the_snapshot_first() -> None:
    rendering = work(render, TORCH, trainjob_json("a"), trainjob_json("b"))
    assert [(each["kind"], each["metadata"]["name"]) for each in rendering.objects] == [
        ("ConfigMap", "a-runtime-snapshot"),
        ("JobSet", "a"),
        ("ConfigMap", "b-runtime-snapshot"),
        ("JobSet", "b"),
    ]
    assert not rendering.has_errors


def test_a_trainjob_without_namespace_and_uid_should_get_placeholders() -> None:
    value = trainjob_json()
    value["metadata"] = {"name": "demo"}
    before = copy_of(value)
    (_, jobset) = work(render, TORCH, value).objects
    assert jobset["metadata"]["namespace"] == "team-a"
    assert jobset["metadata"]["ownerReferences"][0]["uid"] == PLACEHOLDER_UID
    assert value == before


def test_what_became_of_a_trainjob_elsewhere_should_not_matter() -> None:
    value = {**trainjob_json(), "status": {"runtimeDigest": "sha256:other", "conditions": "broken"}}
    rendering = work(render, TORCH, value)
    assert len(rendering.objects) == 2
    assert [report.warnings for report in rendering.reports] == [[], []]


def test_a_job_with_errors_should_not_keep_the_others_from_being_built() -> None:
    bad = trainjob_json("bad", trainer={"env": [{"name": "PET_NNODES", "value": "1"}]})
    rendering = work(render, TORCH, bad, trainjob_json("good"))
    assert [each["metadata"]["name"] for each in rendering.objects] == ["good-runtime-snapshot", "good"]
    assert [len(report.errors) for report in rendering.reports] == [0, 1, 0]
    assert rendering.has_errors


def test_a_trainjob_of_another_controller_should_be_left_alone() -> None:
    rendering = work(render, TORCH, trainjob_json(managedBy="kueue.x-k8s.io/multikueue"))
    assert rendering.objects == []
    assert rendering.reports[1].warnings == ["nothing is built: the TrainJob is managed by kueue.x-k8s.io/multikueue"]
    assert not rendering.has_errors


def test_reasons_without_a_field_should_be_errors_as_well() -> None:
    for command in (render, validate):
        rendering = work(command, trainjob_json(kind="Nope"))
        assert rendering.reports[0].errors == ["unsupported runtime: Nope.trainer.kubeflow.org"]
    assert work(render, trainjob_json()).reports[0].errors == ["the ClusterTrainingRuntime rt does not exist"]
    (error,) = work(validate, trainjob_json()).reports[0].errors
    assert error.startswith("spec.runtimeRef: Invalid value: ")


def test_a_trainjob_that_does_not_decode_should_be_told_field_by_field() -> None:
    for command in (render, validate):
        rendering = work(command, TORCH, trainjob_json(trainer={"numNodes": 0, "numProcPerNode": "many"}))
        assert [error.split(":")[0] for error in rendering.reports[1].errors] == [
            "spec.trainer.numNodes",
            "spec.trainer.numProcPerNode",
        ]
    assert work(validate, {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob"}).has_errors


def test_unknown_fields_should_be_warnings_to_render_and_errors_to_validate() -> None:
    typo = runtime(job("node", "trainer", container(imagge="x")), mlPolicyy={})
    wanted = trainjob_json(trainer={"numNode": 3})
    rendered = work(render, typo, wanted)
    assert len(rendered.objects) == 2
    path = "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].imagge"
    assert [report.warnings for report in rendered.reports] == [
        [f"{path}: unknown field", "spec.mlPolicyy: unknown field"],
        ["spec.trainer.numNode: unknown field"],
    ]
    validated = work(validate, typo, wanted)
    assert [report.errors for report in validated.reports] == [
        [f"{path}: Forbidden: unknown field", "spec.mlPolicyy: Forbidden: unknown field"],
        ["spec.trainer.numNode: Forbidden: unknown field"],
    ]


def test_runtimes_should_be_validated_by_themselves() -> None:
    broken = runtime(job("node", "trainer", {"image": "x"}))
    missing = runtime(job("node", "trainer", container("x"), replicas=2))
    deprecated = runtime()
    deprecated["metadata"]["labels"] = {"trainer.kubeflow.org/support": "deprecated"}
    reports = work(validate, broken, missing, deprecated, runtime(kind="TrainingRuntime")).reports
    assert [len(report.errors) for report in reports] == [1, 2, 0, 0]
    assert reports[2].warnings == ["the ClusterTrainingRuntime is deprecated, and will be removed"]


def test_a_kind_that_our_group_does_not_have_should_be_told() -> None:
    (report,) = work(validate, {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "Trainjob"}).reports
    assert report.errors == ["there is no kind Trainjob in trainer.kubeflow.org"]


def test_other_objects_should_be_of_no_concern() -> None:
    (report,) = work(validate, {"apiVersion": "v1", "kind": "Pod", "spec": 1}).reports
    assert (report.errors, report.warnings) == ([], [])


def test_a_plugin_that_fails_should_be_an_error_of_its_job() -> None:
    targets = {"targets": [{"jobName": "node", "containerNames": ["x"]}]}
    value = runtime(mlPolicy={"torch": {"envInjection": targets}})
    (report, failed) = work(render, value, trainjob_json()).reports
    assert report.errors == []
    assert failed.errors[0].startswith("spec.runtimeRef: Invalid value")
    assert dependencies(value).namespace == "kubeflow-system"
