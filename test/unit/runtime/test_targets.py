from typing import Any

import pytest

from ktrainer.runtime.targets import validate_targets
from support.training import blueprint, container, initializer, job, runtime, trainjob

RUNTIME = runtime(
    initializer("dataset-initializer"),
    job(
        "node", "trainer", container(), container("side"), pod={"initContainers": [container("pre"), container("node")]}
    ),
)


def change(job_name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"name": job_name, "template": {"spec": {"template": {"spec": spec}}}}


def errors(job_name: str, spec: dict[str, Any]) -> list[list[str]]:
    """What is found when the same is asked for in each of the two ways."""
    override = trainjob(podTemplateOverrides=[{"targetJobs": [{"name": job_name}], "spec": spec}])
    template = {"spec": {"replicatedJobs": [change(job_name, spec)]}}
    patch = trainjob(runtimePatches=[{"manager": "a.io/b", "trainingRuntimeSpec": {"template": template}}])
    return [[str(error) for error in validate_targets(blueprint(RUNTIME), wanted)] for wanted in (override, patch)]


PATHS = ("spec.podTemplateOverrides", "spec.runtimePatches")


@pytest.mark.parametrize(
    ("job_name", "spec", "reason"),
    [
        pytest.param("ghost", {}, '"ghost": the runtime has no such job', id="job"),
        pytest.param(
            "node",
            {"containers": [{"name": "ghost"}]},
            '"ghost": the runtime\'s job node has no such container',
            id="container",
        ),
        pytest.param(
            "node",
            {"initContainers": [{"name": "side"}]},
            '"side": the runtime\'s job node has no such init container',
            id="a container is no init container",
        ),
        pytest.param(
            "node",
            {"containers": [{"name": "pre"}]},
            '"pre": the runtime\'s job node has no such container',
            id="an init container is no container",
        ),
        pytest.param(
            "node",
            {"containers": [{"name": "node", "env": [{"name": "A", "value": "1"}]}]},
            '"node": the variables of this container are set by spec.trainer or spec.initializer',
            id="variables of the training container",
        ),
        pytest.param(
            "dataset-initializer",
            {"containers": [{"name": "dataset-initializer", "env": [{"name": "A", "value": "1"}]}]},
            '"dataset-initializer": the variables of this container are set by spec.trainer or spec.initializer',
            id="variables of an initializer",
        ),
    ],
)
def test_what_the_runtime_lacks_should_be_refused(job_name: str, spec: dict[str, Any], reason: str) -> None:
    assert errors(job_name, spec) == [[f"{path}: Invalid value: {reason}"] for path in PATHS]


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({}, id="nothing"),
        pytest.param(
            {"containers": [{"name": "node", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}]}, id="mounts"
        ),
        pytest.param(
            {"containers": [{"name": "side", "env": [{"name": "A", "value": "1"}]}]}, id="a sidecar's variables"
        ),
        pytest.param(
            {"initContainers": [{"name": "node", "env": [{"name": "A"}]}]}, id="an init container of that name"
        ),
    ],
)
def test_what_the_runtime_has_should_pass(spec: dict[str, Any]) -> None:
    assert errors("node", spec) == [[], []]


def test_all_targets_should_be_judged() -> None:
    wanted = trainjob(
        podTemplateOverrides=[
            {"targetJobs": [{"name": "a"}, {"name": "node"}], "spec": {"containers": [{"name": "x"}]}},
            {"targetJobs": [{"name": "b"}]},
        ],
        runtimePatches=[
            {"manager": "a.io/b"},
            {"manager": "c.io/d", "trainingRuntimeSpec": {}},
            {"manager": "e.io/f", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": "c"}]}}}},
        ],
    )
    assert [error.value for error in validate_targets(blueprint(RUNTIME), wanted)] == ["a", "x", "b", "c"]
