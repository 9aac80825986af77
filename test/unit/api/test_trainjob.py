import pytest

from ktrainer.api.decoding import decode
from ktrainer.api.labels import GROUP
from ktrainer.api.resources import API_VERSION, CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS
from ktrainer.api.trainingruntime import ClusterTrainingRuntime, MpiImplementation, TrainingRuntime
from ktrainer.api.trainjob import TrainJob
from support.apiobjects import cluster_runtime, runtime


def test_the_version_of_our_kinds_should_be_written_once() -> None:
    assert {resource.api_version for resource in (TRAINJOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)} == {
        API_VERSION
    }
    assert API_VERSION.startswith(f"{GROUP}/")
    assert TrainJob.model_fields["api_version"].default == API_VERSION


@pytest.mark.parametrize("name", list(MpiImplementation))
def test_a_word_should_be_read_as_its_member(name: MpiImplementation) -> None:
    item = decode(TrainingRuntime, runtime(mlPolicy={"mpi": {"mpiImplementation": str(name)}}))
    assert isinstance(item, TrainingRuntime)
    assert item.spec.ml_policy is not None
    assert item.spec.ml_policy.mpi is not None
    assert item.spec.ml_policy.mpi.mpi_implementation is name


def test_only_a_cluster_runtime_should_choose_its_namespaces() -> None:
    selector = {"matchLabels": {"team": "a"}}
    item = decode(ClusterTrainingRuntime, cluster_runtime(allowedNamespaces=selector), strict=True)
    assert isinstance(item, ClusterTrainingRuntime)
    assert item.spec.allowed_namespaces == selector
    refusal = decode(TrainingRuntime, runtime(allowedNamespaces=selector), strict=True)
    assert isinstance(refusal, list)
    assert str(refusal[0]) == "spec.allowedNamespaces: Forbidden: unknown field"


def test_a_runtime_without_a_spec_should_be_empty() -> None:
    item = decode(TrainingRuntime, {"metadata": {"name": "a"}})
    assert isinstance(item, TrainingRuntime)
    assert (item.spec.ml_policy, item.spec.template.metadata, item.spec.template.spec) == (None, None, {})
