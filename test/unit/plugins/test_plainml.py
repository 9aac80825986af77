from typing import Any

import pytest

from ktrainer.plugins.plainml import PlainML
from support.training import dependencies, info_of, job, runtime, trainjob


@pytest.mark.parametrize("policy", [None, {"numNodes": 3}, {"xgboost": {}}, {"flux": {}}])
def test_the_trainjobs_number_should_size_the_trainers_job(policy: Any) -> None:
    more: dict[str, Any] = {"mlPolicy": policy} if policy else {}
    value = runtime(job("aux", None), job(), **more)
    info = info_of(value, wanted := trainjob(trainer={"numNodes": 5}))
    PlainML(dependencies()).enforce_ml_policy(info, wanted)
    assert [pods.count for pods in info.pod_sets] == [1, 5]


@pytest.mark.parametrize("policy", [{"torch": {}}, {"mpi": {}}, {"jax": {}}])
def test_a_framework_that_counts_for_itself_should_be_left_to_it(policy: Any) -> None:
    info = info_of(runtime(mlPolicy=policy), wanted := trainjob(trainer={"numNodes": 5}))
    assert info.trainer is not None
    info.trainer.count = 1
    PlainML(dependencies()).enforce_ml_policy(info, wanted)
    assert info.trainer.count == 1


@pytest.mark.parametrize("spec", [{}, {"trainer": {}}])
def test_without_a_number_the_runtimes_should_stay(spec: Any) -> None:
    info = info_of(runtime(mlPolicy={"numNodes": 3}), wanted := trainjob(**spec))
    PlainML(dependencies()).enforce_ml_policy(info, wanted)
    assert [pods.count for pods in info.pod_sets] == [3]


def test_a_runtime_without_a_trainer_should_be_left_alone() -> None:
    info = info_of(runtime(job("aux", None)), wanted := trainjob(trainer={"numNodes": 5}))
    PlainML(dependencies()).enforce_ml_policy(info, wanted)
    assert [pods.count for pods in info.pod_sets] == [1]
