from typing import Any

import pytest

from ktrainer.framework.userenv import env_of


@pytest.mark.parametrize(
    ("entry", "wanted"),
    [
        pytest.param({"value": "1"}, {"value": "1"}, id="literal"),
        pytest.param({"value": ""}, {"value": ""}, id="an empty value is written"),
        pytest.param({}, {"value": ""}, id="an absent value is written"),
        pytest.param(
            {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "a"}}},
            {"valueFrom": {"fieldRef": {"fieldPath": "a"}}},
            id="a field without its version",
        ),
        pytest.param(
            {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"valueFrom": {"resourceFieldRef": {"containerName": "", "resource": "limits.cpu", "divisor": "0"}}},
            id="a resource in full",
        ),
        pytest.param(
            {"valueFrom": {"resourceFieldRef": {"containerName": "c", "resource": "r", "divisor": "1024Ki"}}},
            {"valueFrom": {"resourceFieldRef": {"containerName": "c", "resource": "r", "divisor": "1Mi"}}},
            id="a divisor in canonical form",
        ),
        pytest.param(
            {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}},
            {"valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": False}}},
            id="a key of a Secret",
        ),
        pytest.param(
            {"valueFrom": {"fileKeyRef": {"path": "p"}}},
            {"valueFrom": {"fileKeyRef": {"path": "p"}}},
            id="a source that the original does not know",
        ),
    ],
)
def test_a_variable_should_be_written_as_the_original_writes_it(entry: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert env_of([{"name": "A", **entry}]) == [{"name": "A", **wanted}]


def test_nothing_should_be_shared_with_the_trainjob() -> None:
    entry = {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}
    env_of([entry])[0]["valueFrom"]["secretKeyRef"]["name"] = "t"
    assert entry["valueFrom"] == {"secretKeyRef": {"name": "s", "key": "k"}}
