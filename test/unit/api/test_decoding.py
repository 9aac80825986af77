import json

import pytest

from ktrainer.api.decoding import decode, encode
from ktrainer.api.model import Model
from ktrainer.api.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from ktrainer.api.trainjob import MULTIKUEUE, TRAINJOB_CONTROLLER, Trainer, TrainJob, TrainJobSpec
from ktrainer.kube.fields import message_of
from support.apiobjects import Case, Object, patch, trainjob
from support.runtimecases import RUNTIME_CASES
from support.trainjobcases import TRAINJOB_CASES

KINDS: dict[str, type[Model]] = {
    "TrainJob": TrainJob,
    "TrainingRuntime": TrainingRuntime,
    "ClusterTrainingRuntime": ClusterTrainingRuntime,
}


@pytest.mark.parametrize("case", [*TRAINJOB_CASES, *RUNTIME_CASES], ids=str)
def test_the_models_should_judge_an_object_as_the_crds_do(case: Case) -> None:
    before = json.dumps(case.item)
    result = decode(KINDS[case.resource.kind], case.item, strict=True)
    paths = {str(error.path) for error in result} if isinstance(result, list) else set()
    if case.by_schema_only or case.refused is None:
        assert not paths
        assert isinstance(result, Model)
        assert encode(result) == case.item
    else:
        assert paths == {case.refused}
    assert json.dumps(case.item) == before


def decoded(item: Object, *, strict: bool = False) -> TrainJob:
    job = decode(TrainJob, item, strict=strict)
    assert isinstance(job, TrainJob)
    return job


def findings(item: object, *, strict: bool = False) -> list[str]:
    result = decode(TrainJob, item, strict=strict)
    assert isinstance(result, list)
    return sorted(map(str, result))


def test_everything_that_is_wrong_should_be_told_at_once_in_the_words_of_kubernetes() -> None:
    wrong = {
        "metadata": {"name": "job", "labels": {"a": 1}, "ownerReferences": [{"name": 1}]},
        "spec": {
            "trainer": {
                "numNodes": 0,
                "image": "a" * 501,
                "args": ["a"] * 129,
                "env": [{"name": "A"}, {"name": "A"}],
                "command": "train",
                "resourcesPerNode": [],
                "numProcPerNode": 1.5,
            },
            "suspend": "no",
            "managedBy": "me",
            "ttlSecondsAfterFinished": 2**31,
            "initializer": {"model": {"storageUri": 1}},
            "runtimePatches": [{"manager": "", "time": 5}],
        },
        "status": {"firstFailure": {}},
        "kind": "Job",
    }
    assert findings(wrong) == [
        'kind: Unsupported value: "Job": supported values: "TrainJob"',
        "metadata.labels.a: Invalid value: 1: must be of type string",
        "spec.initializer.model.storageUri: Invalid value: 1: must be of type string",
        f'spec.managedBy: Invalid value: "me": must be {TRAINJOB_CONTROLLER} or {MULTIKUEUE}',
        'spec.runtimePatches[0].manager: Invalid value: "": must have at least 1 character',
        "spec.runtimePatches[0].time: Invalid value: 5: must be of type string",
        "spec.runtimeRef: Required value",
        'spec.suspend: Invalid value: "no": must be of type boolean',
        "spec.trainer.args: Too many: 129: must have at most 128 items",
        'spec.trainer.command: Invalid value: "train": must be of type array',
        'spec.trainer.env[1]: Duplicate value: "A"',
        "spec.trainer.image: Too long: may not be more than 500 bytes",
        "spec.trainer.numNodes: Invalid value: 0: must be greater than or equal to 1",
        "spec.trainer.numProcPerNode: Invalid value: 1.5: must be of type integer or string",
        'spec.trainer.resourcesPerNode: Invalid value: "array": must be of type object',
        "spec.ttlSecondsAfterFinished: Invalid value: 2147483648: must be less than or equal to 2147483647",
        "status.firstFailure.time: Required value",
    ]


@pytest.mark.parametrize(
    ("item", "finding"),
    [
        (None, "Invalid value: null: must be of type object"),
        ([], 'Invalid value: "array": must be of type object'),
        ("x", 'Invalid value: "x": must be of type object'),
        ({"spec": {"runtimeRef": {"name": "a"}}}, "metadata: Required value"),
        ({"metadata": {"name": "a"}}, "spec: Required value"),
        ({"metadata": {"name": "a"}, "spec": None}, "spec: Invalid value: null: must be of type object"),
        (
            {"metadata": {"name": "a", "ownerReferences": [{"name": 1}]}, "spec": {"runtimeRef": {"name": "a"}}},
            "metadata.ownerReferences[0].name: Invalid value: 1: must be of type string",
        ),
        (
            {"metadata": 5, "spec": {"runtimeRef": {"name": "a"}}},
            "metadata: Invalid value: 5: must be of type object",
        ),
    ],
)
def test_what_is_no_object_of_ours_should_be_a_finding(item: object, finding: str) -> None:
    assert findings(item) == [finding]


def test_a_bad_name_should_be_told_without_repeating_the_object() -> None:
    (finding,) = findings(trainjob("a.b"))
    assert finding.startswith('Invalid value: "object": metadata.name must be an RFC 1035 label: ')


def test_an_unknown_field_should_be_refused_when_strict() -> None:
    item = trainjob(trainer={"numNode": 1, "num_nodes": 2}, runtimePatches=[patch(hostNetwork=True)])
    pod = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec"
    assert findings(item, strict=True) == [
        f"{pod}.hostNetwork: Forbidden: unknown field",
        "spec.trainer.numNode: Forbidden: unknown field",
        "spec.trainer.num_nodes: Forbidden: unknown field",
    ]


def test_an_unknown_field_should_be_kept_otherwise() -> None:
    item = trainjob(trainer={"numNode": 1, "num_nodes": 2}, fromTheFuture={"a": [1, None]})
    job = decoded(item)
    assert job.spec.trainer == Trainer.model_validate({"numNode": 1, "num_nodes": 2}, by_name=False)
    assert job.spec.trainer is not None
    assert job.spec.trainer.num_nodes is None
    assert encode(job) == item


def test_a_default_should_be_read_and_not_written() -> None:
    job = decoded({"metadata": {"name": "job"}, "spec": {"runtimeRef": {"name": "torch"}}})
    assert job.spec.runtime_ref.kind == "ClusterTrainingRuntime"
    assert job.spec.suspend is False
    assert encode(job) == {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "job"},
        "spec": {"runtimeRef": {"name": "torch"}},
    }


def test_an_empty_command_should_differ_from_none() -> None:
    assert decoded(trainjob(trainer={"command": []})).spec.trainer == Trainer(command=[])
    assert encode(Trainer(command=[])) == {"command": []}
    assert encode(Trainer()) == {}


def test_a_changed_copy_should_be_written_with_its_change() -> None:
    job = decoded(trainjob(labels={"a": "b"}))
    changed = job.spec.model_copy(update={"suspend": True})
    assert encode(changed) == {"runtimeRef": {"name": "torch"}, "labels": {"a": "b"}, "suspend": True}


def test_a_model_should_be_made_in_python_by_the_names_of_its_attributes() -> None:
    spec = TrainJobSpec.model_validate({"runtime_ref": {"name": "a"}, "active_deadline_seconds": 5})
    assert encode(spec) == {"runtimeRef": {"name": "a"}, "activeDeadlineSeconds": 5}


def test_a_message_should_hold_all_findings() -> None:
    result = decode(TrainJob, trainjob(trainer={"numNodes": 0}, suspend=1))
    assert isinstance(result, list)
    assert message_of(result) == (
        "[spec.trainer.numNodes: Invalid value: 0: must be greater than or equal to 1, "
        "spec.suspend: Invalid value: 1: must be of type boolean]"
    )


def test_a_null_inside_a_foreign_part_should_be_kept() -> None:
    item = trainjob(trainer={"resourcesPerNode": {"limits": None}, "env": [{"name": "A", "value": None}]})
    assert encode(decoded(item)) == item
