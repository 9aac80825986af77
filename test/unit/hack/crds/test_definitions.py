from typing import Any

import pytest

from crds.definitions import Definitions

CORE = "io.k8s.api.core.v1."


@pytest.fixture(scope="module")
def definitions() -> Definitions:
    return Definitions.load()


def field(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for name in path.split("."):
        schema = schema["items"] if name == "[]" else schema["properties"][name]
    return schema


def test_references_should_be_resolved_and_prose_dropped() -> None:
    definitions = Definitions(
        {
            "core.v1.Outer": {
                "description": "dropped",
                "type": ["object", "null"],
                "required": ["b"],
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    "b": {
                        "type": ["array", "null"],
                        "items": {"$ref": "#/$defs/io.k8s.api.core.v1.Inner"},
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "x-kubernetes-patch-merge-key": "name",
                    },
                    "a": {
                        "type": "object",
                        "additionalProperties": {"$ref": "core.v1.Inner"},
                        "description": "dropped",
                    },
                },
            },
            "core.v1.Inner": {"properties": {"name": {"type": "string", "enum": None}}},
        }
    )
    inner = {"type": "object", "properties": {"name": {"type": "string"}}}
    assert definitions.schema_of("core.v1.Outer") == {
        "type": "object",
        "required": ["b"],
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "a": {"type": "object", "additionalProperties": inner},
            "b": {
                "type": "array",
                "items": inner,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        },
    }


def test_quantities_and_int_or_string_should_be_written_as_kubernetes_does(definitions: Definitions) -> None:
    divisor = field(definitions.schema_of("core.v1.EnvVar"), "valueFrom.resourceFieldRef.divisor")
    assert divisor["x-kubernetes-int-or-string"] is True
    assert "pattern" in divisor
    port = field(definitions.schema_of("core.v1.Container"), "livenessProbe.httpGet.port")
    assert port == {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}


def test_the_overlay_should_give_list_keys_a_value(definitions: Definitions) -> None:
    container = definitions.schema_of("core.v1.Container")
    assert field(container, "ports")["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert field(container, "ports.[].protocol")["default"] == "TCP"


def test_the_metadata_of_a_template_should_be_what_users_can_give(definitions: Definitions) -> None:
    meta = field(definitions.schema_of("batch.v1.JobTemplateSpec"), "metadata")
    assert sorted(meta["properties"]) == ["annotations", "finalizers", "labels", "name", "namespace"]


def test_a_jobset_should_hold_whole_job_templates(definitions: Definitions) -> None:
    spec = definitions.schema_of("jobset.v1alpha2.JobSetSpec")
    assert field(spec, "replicatedJobs.[].template") == definitions.schema_of("batch.v1.JobTemplateSpec")
    assert field(spec, "replicatedJobs.[].replicas")["default"] == 1
    assert field(spec, "network")["x-kubernetes-validations"] == [
        {"rule": "self == oldSelf", "message": "Value is immutable"}
    ]


def test_an_unknown_type_should_not_be_invented(definitions: Definitions) -> None:
    with pytest.raises(KeyError):
        definitions.schema_of("core.v1.Podd")
