import msgspec
import pytest
from pydantic import ValidationError

from ktrainer.api.decoding import decode, encode
from ktrainer.api.trainjob import TrainJob, TrainJobSpec
from ktrainer.api.trainjobstatus import ConditionType, State, TrainJobStatus
from ktrainer.kube.conditions import TRUE, Condition
from ktrainer.kube.meta import ObjectMeta
from support.apiobjects import trainjob


def test_a_model_should_be_frozen() -> None:
    spec = TrainJobSpec.model_validate({"runtimeRef": {"name": "torch"}})
    with pytest.raises(ValidationError, match="frozen"):
        spec.suspend = True


def test_metadata_should_be_that_of_the_caches() -> None:
    meta = ObjectMeta(name="job", namespace="ns", uid="u", labels={"a": "b"})
    job = decode(TrainJob, {**trainjob(), "metadata": meta})
    assert isinstance(job, TrainJob)
    assert job.metadata is meta
    assert encode(job)["metadata"] == {"name": "job", "namespace": "ns", "uid": "u", "labels": {"a": "b"}}


def test_metadata_should_be_read_from_json_without_what_nobody_reads() -> None:
    item = {**trainjob(), "metadata": {"name": "job", "managedFields": [{}], "finalizers": ["a/b"]}}
    job = decode(TrainJob, item, strict=True)
    assert isinstance(job, TrainJob)
    assert job.metadata == ObjectMeta(name="job", finalizers=("a/b",))


def test_conditions_should_be_those_of_the_kit() -> None:
    condition = Condition(ConditionType.RUNNING, TRUE, "NodesReady", "", "2026-01-02T03:04:05Z", 3)
    status = TrainJobStatus(conditions=[condition], state=State.RUNNING)
    written = encode(status)
    assert written == {"conditions": [msgspec.to_builtins(condition)], "state": "Running"}
    assert decode(TrainJobStatus, written) == status
