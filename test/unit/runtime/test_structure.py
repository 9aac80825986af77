from typing import Any

import pytest

from ktrainer.kube.fields import Path
from ktrainer.runtime.jobsetfacts import JOBSET_SPEC
from ktrainer.runtime.structure import settle


def settled(value: dict[str, Any], type_name: str = "core.v1.PodSpec") -> dict[str, Any]:
    assert settle(value, type_name, Path()) == []
    return value


def errors(value: dict[str, Any], type_name: str = "core.v1.PodSpec") -> list[str]:
    return [str(error) for error in settle(value, type_name, Path("spec"))]


def pod(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "a", **fields}]}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("1000m", "1"), ("1024Mi", "1Gi"), ("0.5", "500m"), (8, "8"), (0.5, "500m"), ("1e3", "1e3"), ("12G", "12G")],
)
def test_quantities_should_be_spelled_canonically(given: Any, wanted: str) -> None:
    made = settled(pod(resources={"requests": {"cpu": given}}))
    assert made["containers"][0]["resources"]["requests"] == {"cpu": wanted}


def test_quantities_should_be_found_wherever_they_are() -> None:
    claim = {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}
    made = settled(
        {
            "containers": [{"name": "a"}],
            "initContainers": [{"name": "b", "resources": {"limits": {"cpu": "1000m"}}}],
            "overhead": {"cpu": "1000m"},
            "resources": {"requests": {"cpu": "1000m"}},
            "volumes": [
                {"name": "v", "emptyDir": {"sizeLimit": "1024Mi"}},
                {"name": "e", "ephemeral": {"volumeClaimTemplate": claim}},
            ],
        }
    )
    assert made["initContainers"][0]["resources"]["limits"]["cpu"] == made["overhead"]["cpu"] == "1"
    assert made["resources"]["requests"]["cpu"] == "1"
    assert made["volumes"][0]["emptyDir"]["sizeLimit"] == "1Gi"
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"


@pytest.mark.parametrize(
    ("value", "path", "error"),
    [
        pytest.param({}, "containers", "Required value", id="required"),
        pytest.param({"containers": None}, "containers", "Required value", id="null is absent"),
        pytest.param({"containers": {}}, "containers", "must be of type array", id="list"),
        pytest.param({"containers": ["x"]}, "containers[0]", "must be of type object", id="item"),
        pytest.param(pod(image=1), "containers[0].image", "must be of type string", id="string"),
        pytest.param(pod(stdin="yes"), "containers[0].stdin", "must be of type boolean", id="boolean"),
        pytest.param(pod(env=[{"value": "x"}]), "containers[0].env[0].name", "Required value", id="inside a list"),
        pytest.param({**pod(), "nodeSelector": {"a": 1}}, "nodeSelector.a", "must be of type string", id="map"),
        pytest.param(
            {**pod(), "terminationGracePeriodSeconds": True},
            "terminationGracePeriodSeconds",
            "must be of type integer",
            id="a boolean is no integer",
        ),
        pytest.param(
            {**pod(), "terminationGracePeriodSeconds": 2**70},
            "terminationGracePeriodSeconds",
            "must be less than or equal to 9223372036854775807",
            id="too great",
        ),
        pytest.param(
            {**pod(), "priority": 2**31}, "priority", "must be less than or equal to 2147483647", id="32 bits"
        ),
        pytest.param(
            {**pod(), "priority": -(2**31) - 1},
            "priority",
            "must be greater than or equal to -2147483648",
            id="too small",
        ),
        pytest.param(
            pod(livenessProbe={"httpGet": {"port": 2**31}}),
            "containers[0].livenessProbe.httpGet.port",
            "must be less than or equal to 2147483647",
            id="integer or string of 32 bits",
        ),
        pytest.param(
            pod(livenessProbe={"httpGet": {"port": []}}),
            "containers[0].livenessProbe.httpGet.port",
            "must be of type integer or string",
            id="integer or string",
        ),
        pytest.param(
            pod(resources={"limits": {"cpu": []}}),
            "containers[0].resources.limits.cpu",
            "must be of type quantity",
            id="no quantity at all",
        ),
        pytest.param(
            pod(resources={"limits": {"cpu": "lots"}}),
            "containers[0].resources.limits.cpu",
            "a quantity needs a number",
            id="no quantity",
        ),
    ],
)
def test_what_does_not_fit_should_be_found_with_its_path(value: dict[str, Any], path: str, error: str) -> None:
    (found,) = errors(value)
    assert found.startswith(f"spec.{path}: ")
    assert error in found


def test_all_errors_should_be_found_at_once() -> None:
    assert len(errors({"containers": [{"image": 1}, {"name": 2}], "hostname": 3})) == 4


def test_integers_should_be_as_great_as_they_may_be() -> None:
    value = {**pod(), "priority": 2**31 - 1, "terminationGracePeriodSeconds": 2**63 - 1}
    assert settled(dict(value)) == value


def test_unknown_fields_should_stay() -> None:
    value = {**pod(imagge="x"), "future": {"a": 1}}
    assert settled(value) == {**pod(imagge="x"), "future": {"a": 1}}


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        pytest.param({"env": [{"name": "A", "value": ""}]}, {"env": [{"name": "A"}]}, id="an empty value"),
        pytest.param({"stdin": False, "workingDir": ""}, {}, id="false and empty"),
        pytest.param({"stdin": True}, {"stdin": True}, id="true"),
        pytest.param(
            {"envFrom": [{"secretRef": {"name": "", "optional": True}}]},
            {"envFrom": [{"secretRef": {"optional": True}}]},
            id="a reference that names nothing",
        ),
        pytest.param(
            {"securityContext": {"privileged": False, "runAsUser": 0}},
            {"securityContext": {"privileged": False, "runAsUser": 0}},
            id="where zero differs from absent",
        ),
        pytest.param(
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "r", "containerName": ""}}}]},
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "r", "divisor": "0"}}}]},
            id="a divisor is written",
        ),
        pytest.param({"env": [], "resources": {"limits": {}}, "securityContext": None}, {}, id="empty and null"),
        pytest.param(
            {"lifecycle": {"preStop": {"exec": {}}}},
            {"lifecycle": {"preStop": {"exec": {}}}},
            id="where empty differs from absent",
        ),
    ],
)
def test_zero_values_that_mean_nothing_should_be_left_out(given: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert settled(pod(**given)) == pod(**wanted)


def test_a_list_that_must_be_there_should_stay_where_it_is_empty() -> None:
    assert settled({"containers": [], "volumes": []}) == {"containers": []}


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"replicatedJobs": [{"name": "a", "template": {}, "replicas": 2**31}]}, "replicatedJobs[0].replicas"),
        (
            {"replicatedJobs": [{"name": "a", "template": {"spec": {"backoffLimit": 2**40, "template": {}}}}]},
            "replicatedJobs[0].template.spec.backoffLimit",
        ),
        ({"ttlSecondsAfterFinished": 2**31}, "ttlSecondsAfterFinished"),
        ({"failurePolicy": {"maxRestarts": 2**31}}, "failurePolicy.maxRestarts"),
    ],
)
def test_numbers_of_a_jobset_should_fit_into_32_bits(value: dict[str, Any], path: str) -> None:
    (found,) = errors(value, JOBSET_SPEC)
    assert found.startswith(f"spec.{path}: Invalid value: ")


def test_a_jobset_should_be_known_as_well() -> None:
    value = {"replicatedJobs": [{"name": "a"}], "failurePolicy": {"maxRestarts": 0, "rules": [{"name": "r"}]}}
    assert [str(error.path) for error in settle(value, JOBSET_SPEC, Path("s"))] == [
        "s.replicatedJobs[0].template",
        "s.failurePolicy.rules[0].action",
    ]
    assert value["failurePolicy"] == {"rules": [{"name": "r"}]}


def test_the_empty_kind_of_a_volume_claim_should_be_left_out() -> None:
    claim = {"apiVersion": "", "kind": "", "metadata": {"name": "data"}}
    value = settled({"volumeClaimPolicies": [{"templates": [claim]}]}, JOBSET_SPEC)
    assert value == {"volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}}]}]}
