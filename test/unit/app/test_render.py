from typing import Any

import pytest

from ktrainer.app.render import PLACEHOLDER_UID, Rendering, render, validate
from ktrainer.kube.jsonvalue import copy_of
from support.rendering import rendered
from support.training import container, dependencies, job, runtime, trainjob_json

J = dict[str, Any]
TORCH = runtime(mlPolicy={"torch": {}})


def work(command: Any, *values: J) -> Rendering:
    return rendered(*values, command=command, namespace="team-a")


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


def test_a_name_that_the_api_server_would_generate_should_be_stood_in_for() -> None:
    value = trainjob_json()
    value["metadata"] = {"generateName": "demo-"}
    rendering = work(render, TORCH, value)
    assert not rendering.has_errors
    assert rendering.objects[1]["metadata"]["name"] == "demo-xxxxx"


def test_what_became_of_a_trainjob_elsewhere_should_not_matter() -> None:
    value = {**trainjob_json(), "status": {"runtimeDigest": "sha256:other", "conditions": "broken"}}
    rendering = work(render, TORCH, value)
    assert len(rendering.objects) == 2
    assert [report.warnings for report in rendering.reports] == [[], []]


def test_a_trainjob_that_is_being_deleted_elsewhere_should_be_judged_as_a_new_one() -> None:
    bad = trainjob_json(trainer={"env": [{"name": "PET_NNODES", "value": "1"}]})
    bad["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z"
    for command in (render, validate):
        assert len(work(command, TORCH, bad).reports[1].errors) == 1


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


def test_a_runtime_that_is_missing_should_be_told_alike_by_both_commands() -> None:
    reference = '{"apiGroup":"trainer.kubeflow.org","kind":"ClusterTrainingRuntime","name":"rt"}'
    for command in (render, validate):
        assert work(command, trainjob_json()).reports[0].errors == [
            f"spec.runtimeRef: Invalid value: {reference}: the ClusterTrainingRuntime must exist before the TrainJob"
        ]


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


def test_fractions_that_an_api_server_refuses_should_be_errors_to_validate() -> None:
    given = runtime(job("node", "trainer", container(resources={"requests": {"cpu": 0.5, "memory": 1.0}})))
    wanted = trainjob_json(trainer={"resourcesPerNode": {"limits": {"cpu": 1.5}}})
    assert [report.errors for report in work(render, given, wanted).reports] == [[], []]
    path = "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].resources.requests.cpu"
    assert [report.errors for report in work(validate, given, wanted).reports] == [
        [f'{path}: Invalid value: 0.5: must be an integer or a string, such as "0.5"'],
        ['spec.trainer.resourcesPerNode.limits.cpu: Invalid value: 1.5: must be an integer or a string, such as "1.5"'],
    ]


def test_unknown_fields_should_not_be_built() -> None:
    side = container("side", env=[{"name": "A", "value": "0"}])
    typo = runtime(job("node", "trainer", container(imagge="x"), side))
    override = {
        "targetJobs": [{"name": "node"}],
        "spec": {
            "hostNetwork": True,
            "tolerations": [{"key": "a", "foo": "b"}],
            "containers": [{"name": "side", "image": "bad", "env": [{"name": "A", "value": "1", "valeu": "2"}]}],
        },
    }
    pods = {"spec": {"volumes": [{"name": "v", "emptydir": {}, "emptyDir": {}}], "affinity": {"nodeAfinity": {}}}}
    patch = {"replicatedJobs": [{"name": "node", "replicas": 9, "template": {"spec": {"template": pods}}}]}
    wanted = trainjob_json(
        trainer={"resourcesPerNode": {"cpu": 4}, "env": [{"name": "B", "value": "1", "valeu": "2"}]},
        podTemplateOverrides=[override],
        runtimePatches=[{"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": patch}}}],
    )
    rendering = work(render, typo, wanted)
    assert [len(report.warnings) for report in rendering.reports] == [1, 9]
    snapshot, jobset = rendering.objects
    assert "imagge" not in snapshot["data"]["runtime"]
    (built,) = jobset["spec"]["replicatedJobs"]
    assert built["replicas"] == 1
    assert built["template"]["spec"]["template"]["spec"] == {
        "affinity": {},
        "tolerations": [{"key": "a"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {"name": "node", "image": "img/node:1", "env": [{"name": "B", "value": "1"}]},
            {"name": "side", "image": "img/side:1", "env": [{"name": "A", "value": "1"}]},
        ],
    }
    assert [len(report.errors) for report in work(validate, typo, wanted).reports] == [1, 9]


def test_unknown_fields_should_be_told_with_the_other_findings() -> None:
    (_, report) = work(validate, TORCH, trainjob_json(trainer={"numNode": 3, "numNodes": 0})).reports
    assert [error.split(":")[0] for error in report.errors] == ["spec.trainer.numNode", "spec.trainer.numNodes"]


@pytest.mark.parametrize(
    ("policy", "spec"),
    [
        ({"torch": {}}, {"trainer": {"env": None}}),
        ({"torch": {}}, {"suspend": None, "labels": {"a": None}, "trainer": None}),
        ({"torch": {}}, {"trainer": {"resourcesPerNode": {"limits": {"cpu": None}}}}),
        ({"torch": {"numProcPerNode": None}, "mpi": None}, {}),
    ],
)
def test_null_should_be_the_same_as_absent(policy: J, spec: J) -> None:
    value = runtime(job("node", "trainer", container(command=None)), mlPolicy=policy, podGroupPolicy=None)
    for command in (render, validate):
        rendering = work(command, value, trainjob_json(**spec))
        assert not rendering.has_errors
        assert rendering.objects == work(command, TORCH, trainjob_json()).objects


def test_null_in_a_change_should_leave_what_the_runtime_says() -> None:
    value = runtime(job("node", "trainer", pod={"nodeSelector": {"a": "b"}, "serviceAccountName": "robot"}))
    spec = {"nodeSelector": {"a": None}, "serviceAccountName": None}
    jobs = [{"name": "node", "template": {"spec": {"template": {"spec": spec}}}}]
    patch = {"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    override = {"targetJobs": [{"name": "node"}], "spec": spec}
    wanted = trainjob_json(podTemplateOverrides=[override], runtimePatches=[patch])
    assert work(render, value, wanted).objects == work(render, value, trainjob_json()).objects


def test_null_where_something_must_be_should_be_told_as_missing() -> None:
    wanted = trainjob_json(trainer={"env": [{"name": None}]})
    wanted["spec"]["runtimeRef"]["name"] = None
    (report,) = work(validate, wanted).reports
    assert report.errors == ["spec.runtimeRef.name: Required value"]
    (report,) = work(validate, runtime(job("node", "trainer", {"name": None, "image": "x"}))).reports
    assert report.errors[0].endswith("containers[0].name: Required value")
    (report,) = work(validate, {**runtime(), "spec": {"template": None}}).reports
    assert report.errors == ["spec: Invalid value: 0: must have at least 1 field"]


def test_numbers_beyond_their_format_should_be_field_errors() -> None:
    (_, report) = work(validate, TORCH, trainjob_json(trainer={"numProcPerNode": 10**12})).reports
    assert report.errors[0].startswith("spec.trainer.numProcPerNode: Invalid value: 1000000000000: a number must be")
    (report,) = work(validate, runtime(job(replicas=2**31))).reports
    assert report.errors[0].startswith("spec.template.spec.replicatedJobs[0].replicas: Invalid value: 2147483648: ")


def test_more_nodes_than_anybody_could_write_down_should_be_refused() -> None:
    value = runtime(job("launcher"), job("node", None), mlPolicy={"mpi": {}})
    for command in (render, validate):
        (_, report) = work(command, value, trainjob_json(trainer={"numNodes": 2**31 - 1})).reports
        assert [error.split(":")[0] for error in report.errors] == ["spec.trainer.numNodes"]


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


def test_a_kind_of_ours_in_another_group_should_be_told() -> None:
    wrong = {**trainjob_json(), "apiVersion": "kubeflow.org/v1"}
    (report,) = work(validate, wrong).reports
    assert report.errors == [
        'apiVersion: Unsupported value: "kubeflow.org/v1": supported values: "trainer.kubeflow.org/v1alpha1"'
    ]


def test_an_object_without_a_name_should_be_told() -> None:
    nameless = trainjob_json()
    nameless["metadata"] = {"namespace": "team-a"}
    unnamed = runtime()
    del unnamed["metadata"]["name"]
    for command, value in ((validate, nameless), (render, nameless), (validate, unnamed)):
        (report,) = work(command, value).reports
        assert report.errors == ["metadata.name: Required value: name or generateName is required"]


def test_other_objects_should_be_of_no_concern() -> None:
    (report,) = work(validate, {"apiVersion": "v1", "kind": "Pod", "spec": 1}).reports
    assert (report.errors, report.warnings) == ([], [])


def test_an_object_that_does_not_say_what_it_is_should_be_told() -> None:
    nameless = {**trainjob_json(), "apiVersion": None}
    ours = {"apiVersion": "trainer.kubeflow.org/v1alpha1"}
    (nothing, half, odd, other) = work(validate, {}, nameless, {"apiVersion": ["v1"], "kind": "Pod"}, ours).reports
    assert nothing.errors == ["apiVersion: Required value", "kind: Required value"]
    assert half.errors == odd.errors == ["apiVersion: Required value"]
    assert other.errors == ["kind: Required value"]


def test_a_plugin_that_fails_should_be_an_error_of_its_job() -> None:
    targets = {"targets": [{"jobName": "node", "containerNames": ["x"]}]}
    value = runtime(mlPolicy={"torch": {"envInjection": targets}})
    (report, failed) = work(render, value, trainjob_json()).reports
    assert report.errors == []
    assert failed.errors[0].startswith("spec.runtimeRef: Invalid value")
    assert dependencies(value).namespace == "kubeflow-system"


def test_a_key_of_the_wrong_type_should_be_a_field_error() -> None:
    rendering = work(render, TORCH, trainjob_json(trainer={"env": [{"name": {"a": "b"}}, {"name": []}]}))
    (_, report) = rendering.reports
    assert [error.split(":")[0] for error in report.errors] == ["spec.trainer.env[0].name", "spec.trainer.env[1].name"]
