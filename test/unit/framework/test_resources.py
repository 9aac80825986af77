from typing import Any

import pytest

from ktrainer.framework.resources import Requests, cpu_count_of, gpu_count_of, pod_requests_of, sum_of
from ktrainer.kube.quantity import Quantity


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        pytest.param({}, 0, id="none"),
        pytest.param({"limits": {"nvidia.com/gpu": "8"}}, 8, id="limits"),
        pytest.param({"requests": {"amd.com/gpu": "2"}, "limits": {"amd.com/gpu": "4"}}, 2, id="requests go first"),
        pytest.param({"requests": {"cpu": "1"}, "limits": {"a/GPU-x": "3"}}, 3, id="any name with gpu in any case"),
        pytest.param({"requests": {"nvidia.com/gpu": "0"}, "limits": {"nvidia.com/gpu": "4"}}, 4, id="zero is none"),
        pytest.param({"limits": {"nvidia.com/gpu": "2", "amd.com/gpu": "1"}}, 1, id="the first by name"),
        pytest.param({"limits": {"amd.com/gpu": "0", "nvidia.com/gpu": "4"}}, 4, id="the first that there is"),
        pytest.param({"limits": None, "requests": None}, 0, id="null"),
    ],
)
def test_gpus_should_be_counted_by_any_resource_with_gpu_in_its_name(resources: dict[str, Any], count: int) -> None:
    assert gpu_count_of(resources) == count


@pytest.mark.parametrize(
    ("resources", "count"),
    [
        pytest.param({}, 0, id="none"),
        pytest.param({"requests": {"cpu": "3500m"}}, 4, id="rounded up"),
        pytest.param({"requests": {"cpu": "2"}, "limits": {"cpu": "4"}}, 2, id="requests go first"),
        pytest.param({"requests": {"cpu": "0"}, "limits": {"cpu": "4"}}, 4, id="zero is none"),
        pytest.param({"requests": {"memory": "1Gi"}, "limits": {"cpu": "250m"}}, 1, id="limits"),
    ],
)
def test_cpus_should_be_counted_and_rounded_up(resources: dict[str, Any], count: int) -> None:
    assert cpu_count_of(resources) == count


def requests(**quantities: str) -> dict[str, Any]:
    return {"resources": {"requests": quantities}}


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        pytest.param({"containers": [{}, {"resources": {"limits": {"cpu": "1"}}}]}, {}, id="limits do not stand in"),
        pytest.param({"containers": [requests(cpu="250m"), requests(cpu="1", memory="1Gi")]},
                     {"cpu": "1250m", "memory": "1Gi"}, id="containers add up"),
        pytest.param({"containers": [requests(cpu="1")], "initContainers": [requests(cpu="3"), requests(cpu="2")]},
                     {"cpu": "3"}, id="the greatest init container"),
        pytest.param(
            {
                "containers": [requests(cpu="1")],
                "initContainers": [
                    requests(cpu="2"),
                    {**requests(cpu="500m"), "restartPolicy": "Always"},
                    requests(cpu="1200m"),
                ],
            },
            {"cpu": "2"},
            id="a sidecar runs with what is started after it",
        ),
        pytest.param(
            {
                "containers": [requests(cpu="1")],
                "initContainers": [{**requests(cpu="500m"), "restartPolicy": "Always"}, requests(cpu="1200m")],
            },
            {"cpu": "1700m"},
            id="an init container beside a sidecar",
        ),
        pytest.param(
            {"containers": [requests(cpu="1", memory="1Gi", **{"x.com/y": "2"})],
             **requests(cpu="5", **{"hugepages-2Mi": "4Mi", "x.com/y": "9"})},
            {"cpu": "5", "memory": "1Gi", "hugepages-2Mi": "4Mi", "x.com/y": "2"},
            id="requests of the pod itself",
        ),
        pytest.param({"containers": [requests(cpu="1")], "overhead": {"cpu": "100m", "memory": "10Mi"}},
                     {"cpu": "1100m", "memory": "10Mi"}, id="overhead"),
    ],
)  # fmt: skip
def test_a_pod_should_ask_for_what_runs_at_the_same_time(pod: dict[str, Any], wanted: dict[str, str]) -> None:
    assert {name: str(quantity) for name, quantity in pod_requests_of(pod).items()} == wanted


def test_sums_should_be_exact() -> None:
    total: Requests = {}
    sum_of({"cpu": Quantity.parse("100m"), "memory": Quantity.parse("1Gi")}, 3, total)
    sum_of({"cpu": Quantity.parse("1n")}, 1, total)
    assert {name: str(quantity) for name, quantity in total.items()} == {"cpu": "300000001n", "memory": "3Gi"}
