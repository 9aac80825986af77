from typing import Any

import pytest

from crds.definitions import Definitions
from ktrainer.kube.facts import ANYTHING, Shape
from ktrainer.runtime.jobsetfacts import JOBSET_SPEC, jobset_facts
from ktrainer.runtime.rules import validate_rules
from support.training import container, job, runtime

JOBSET = "spec.template.spec"
POD = f"{JOBSET}.replicatedJobs[0].template.spec.template.spec"
STRATEGIES = '"Recreate", "BlockingRecreate", "InPlaceRestart"'
WAITS = [{"name": "a", "status": "Ready"}]


def compare(schema: dict[str, Any], shape: Shape, path: str) -> int:
    """Compare what the CRD and the facts say of a field; count what there is to say."""
    enum, keys = schema.get("enum", []), schema.get("x-kubernetes-list-map-keys", [])
    assert list(shape.enum) == enum, path
    assert list(shape.map_keys) == keys, path
    is_integer = schema.get("type") == "integer"
    assert not is_integer or shape.format == schema.get("format", ""), path
    said = len(enum) + len(keys) + is_integer
    for key, inner in schema.get("properties", {}).items():
        # Nobody reads a status in a template.
        if (shape.ref, key) != ("jobset.v1alpha2.VolumeClaim", "status"):
            said += compare(inner, jobset_facts().child_of(shape, key), f"{path}.{key}")
    if "items" in schema:
        said += compare(schema["items"], shape.items or ANYTHING, f"{path}[]")
    return said


def test_words_keys_and_formats_should_be_those_of_the_crd() -> None:
    assert compare(Definitions.load().schema_of(JOBSET_SPEC), Shape(ref=JOBSET_SPEC), "") > 100


def with_spec(spec: dict[str, Any]) -> dict[str, Any]:
    return {**runtime(), "spec": spec}


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        pytest.param(with_spec({}), ["spec: Invalid value: 0: must have at least 1 field"], id="nothing"),
        pytest.param(
            with_spec({"mlPolicy": {}, "template": {}}),
            ["spec.template: Invalid value: 0: must have at least 1 field"],
            id="an empty template",
        ),
        pytest.param(
            runtime(
                job("a", None),
                job(dependsOn=WAITS),
                template={"startupPolicy": {"startupPolicyOrder": "InOrder"}},
            ),
            [f'{JOBSET}: Invalid value: "object": dependsOn cannot be combined with a startupPolicy of InOrder'],
            id="two orders",
        ),
        pytest.param(
            runtime(template={"successPolicy": {"operator": "Some"}}),
            [f'{JOBSET}.successPolicy.operator: Unsupported value: "Some": supported values: "All", "Any"'],
            id="successPolicy",
        ),
        pytest.param(
            runtime(template={"failurePolicy": {"restartStrategy": "recreate"}}),
            [f'{JOBSET}.failurePolicy.restartStrategy: Unsupported value: "recreate": supported values: {STRATEGIES}'],
            id="failurePolicy",
        ),
        pytest.param(
            runtime(job("node", "trainer", container(), container("x"), container())),
            [f'{POD}.containers[2].name: Duplicate value: "node"'],
            id="containers",
        ),
        pytest.param(
            runtime(job("node", "trainer", container(ports=[{"containerPort": 1}, {"containerPort": 1}]))),
            [f'{POD}.containers[0].ports[1]: Duplicate value: {{"containerPort":1,"protocol":"TCP"}}'],
            id="ports",
        ),
    ],
)
def test_what_the_crd_refuses_should_be_refused(value: dict[str, Any], errors: list[str]) -> None:
    assert [str(error) for error in validate_rules(value)] == errors


@pytest.mark.parametrize(
    "value",
    [
        pytest.param({key: each for key, each in runtime().items() if key != "spec"}, id="no spec"),
        pytest.param(with_spec({"mlPolicy": {}}), id="no template"),
        pytest.param(
            runtime(job(dependsOn=WAITS), template={"startupPolicy": {"startupPolicyOrder": "AnyOrder"}}), id="AnyOrder"
        ),
        pytest.param(runtime(template={"startupPolicy": {"startupPolicyOrder": "InOrder"}}), id="InOrder"),
        pytest.param(runtime(template={"successPolicy": {"operator": "Any"}}), id="a known word"),
        pytest.param(
            runtime(job("node", "trainer", container(), pod={"initContainers": [container()]})), id="an init container"
        ),
        pytest.param(
            runtime(
                job("node", "trainer", container(ports=[{"containerPort": 1}, {"containerPort": 1, "protocol": "UDP"}]))
            ),
            id="ports",
        ),
    ],
)
def test_what_the_crd_accepts_should_pass(value: dict[str, Any]) -> None:
    assert validate_rules(value) == []
