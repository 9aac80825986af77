from typing import Any

import pytest

from ktrainer.plugins.torch.processes import processes_of, wanted_processes_of
from support.training import blueprint, runtime, trainjob

GPU = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"cpu": "5"}}
CPU = {"requests": {"cpu": "4500m"}}


@pytest.mark.parametrize(
    ("wanted", "resources", "processes"),
    [
        pytest.param("auto", GPU, "auto", id="torchrun counts GPUs by itself"),
        pytest.param("auto", CPU, 5, id="auto without GPU is the CPUs"),
        pytest.param("auto", {}, 1, id="at least one"),
        pytest.param("cpu", GPU, 5, id="cpu beside GPUs"),
        pytest.param("cpu", {}, 1, id="cpu of nothing"),
        pytest.param("gpu", CPU, "gpu", id="gpu goes out as the word"),
        pytest.param(3, GPU, 3, id="a number"),
    ],
)
def test_words_should_be_resolved_where_torchrun_cannot(wanted: Any, resources: Any, processes: Any) -> None:
    assert processes_of(wanted, resources) == processes


@pytest.mark.parametrize(
    ("of_job", "of_runtime", "wanted"),
    [
        pytest.param({"numProcPerNode": 2}, {"numProcPerNode": "gpu"}, 2, id="the TrainJob's"),
        pytest.param({}, {"numProcPerNode": 4}, 4, id="the runtime's"),
        pytest.param({}, {}, "auto", id="nobody's"),
    ],
)
def test_the_trainjob_should_be_asked_before_the_runtime(of_job: Any, of_runtime: Any, wanted: Any) -> None:
    policy = blueprint(runtime(mlPolicy={"torch": of_runtime})).ml_policy
    assert policy is not None
    assert policy.torch is not None
    assert wanted_processes_of(policy.torch, trainjob(trainer=of_job)) == wanted
    if not of_job:
        assert wanted_processes_of(policy.torch, trainjob()) == wanted
