from typing import Any

import orjson
import pytest

from ktrainer.kube.jsonvalue import copy_of
from ktrainer.runtime.blueprint import JobNames, manifest_of, read_blueprint
from support.training import blueprint, container, job, runtime


def errors(value: dict[str, Any]) -> list[str]:
    found = read_blueprint(value["kind"], value)
    assert isinstance(found, list)
    return [str(error) for error in found]


def test_a_runtime_should_be_read_without_being_changed() -> None:
    node = job(
        "node", "trainer", container(resources={"limits": {"cpu": "1000m"}}), pod={"initContainers": [container("i")]}
    )
    value = runtime(node, mlPolicy={"numNodes": 2, "torch": {}}, runPolicy={"activeDeadlineSeconds": 5})
    value["spec"]["template"]["metadata"] = {"labels": {"a": "1"}, "annotations": {"b": "2"}}
    before = copy_of(value)
    made = blueprint(value)
    assert value == before
    assert (made.kind, made.name, made.is_deprecated) == ("ClusterTrainingRuntime", "rt", False)
    assert (made.labels, made.annotations) == ({"a": "1"}, {"b": "2"})
    assert made.jobs == {"node": JobNames(frozenset({"node"}), frozenset({"i"}))}
    assert made.run_policy.active_deadline_seconds == 5
    assert b'"cpu":"1"' in made.template
    assert orjson.loads(made.spec) == value["spec"]
    assert manifest_of(made) == {**before, "metadata": {"name": "rt"}}


def test_a_runtime_may_be_almost_empty() -> None:
    made = blueprint(
        {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime", "metadata": {"name": "x"}}
    )
    assert (made.template, made.jobs, made.ml_policy) == (b"{}", {}, None)


def test_a_deprecated_runtime_should_be_known() -> None:
    value = runtime()
    value["metadata"]["labels"] = {"trainer.kubeflow.org/support": "deprecated"}
    assert blueprint(value).is_deprecated


def test_only_a_cluster_runtime_should_have_allowed_namespaces() -> None:
    selector = {"matchLabels": {"a": "b"}}
    assert blueprint(runtime(allowedNamespaces=selector)).allowed_namespaces == selector
    assert blueprint(runtime(kind="TrainingRuntime")).allowed_namespaces is None


@pytest.mark.parametrize(
    ("selector", "error"),
    [
        ({"matchLabels": "x"}, 'matchLabels: Invalid value: "x": must be of type object'),
        ({"matchLabels": {"a": 1}}, "matchLabels.a: Invalid value: 1: must be of type string"),
        ({"matchExpressions": ["x"]}, 'matchExpressions[0]: Invalid value: "x": must be of type object'),
        ({"matchExpressions": [{"key": "a"}]}, "matchExpressions[0].operator: Required value"),
    ],
)
def test_a_selector_of_namespaces_that_is_none_should_be_refused(selector: dict[str, Any], error: str) -> None:
    assert errors(runtime(allowedNamespaces=selector)) == [f"spec.allowedNamespaces.{error}"]


def test_a_metric_that_is_none_should_be_refused() -> None:
    policy = {"minNodes": 1, "maxNodes": 2, "metrics": [{"type": "Resource", "resource": "cpu"}]}
    assert errors(runtime(mlPolicy={"torch": {"elasticPolicy": policy}})) == [
        'spec.mlPolicy.torch.elasticPolicy.metrics[0].resource: Invalid value: "cpu": must be of type object'
    ]


@pytest.mark.parametrize("broken", ["template", "spec", "template.spec", "containers"])
def test_a_job_without_a_whole_pod_template_should_be_refused(broken: str) -> None:
    value = runtime(job())
    template = value["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]
    match broken:
        case "template":
            del template["spec"]
            wanted = "spec.template.spec.replicatedJobs[0].template.spec: Required value"
        case "spec":
            template["spec"]["template"] = {}
            wanted = "spec.template.spec.replicatedJobs[0].template.spec.template: Required value"
        case "template.spec":
            template["spec"]["template"] = {"metadata": {"labels": {"a": "b"}}}
            wanted = "spec.template.spec.replicatedJobs[0].template.spec.template.spec: Required value"
        case _:
            template["spec"]["template"]["spec"]["containers"] = []
            wanted = "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers: Required value"
    assert errors(value) == [wanted]


def test_two_jobs_of_one_name_should_be_refused() -> None:
    assert errors(runtime(job(), job())) == ['spec.template.spec.replicatedJobs[1].name: Duplicate value: "node"']


def test_what_does_not_decode_should_be_refused() -> None:
    assert errors(runtime(mlPolicy={"torch": {}, "jax": {}}))[0].startswith("spec.mlPolicy: Invalid value")
    assert errors(runtime(job("node", "trainer", {"image": "x"}))) == [
        "spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers[0].name: Required value"
    ]


def test_a_number_that_json_cannot_hold_should_be_refused() -> None:
    value = runtime()
    value["spec"]["template"]["spec"]["future"] = 2**100
    assert errors(value)[0].startswith('spec: Invalid value: "object": must be JSON')
