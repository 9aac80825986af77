from typing import Any

import pytest

import gen_crds
from ktrainer.kube.facts import Shape
from ktrainer.runtime.pruning import MODELS, fields_of, prune
from support.training import container, job, runtime, trainjob_json

TEMPLATE = "spec.template.spec.replicatedJobs[0].template"
POD = f"{TEMPLATE}.spec.template"


def compare(schema: dict[str, Any], shape: Shape, path: str) -> int:
    """Compare what may be below a field by a CRD and by us; count the objects."""
    if "properties" in schema and not path.endswith(".volumeClaimPolicies[].templates[].status"):
        known = fields_of(shape.ref)
        assert known.keys() == schema["properties"].keys(), path
        return 1 + sum(compare(inner, known[key], f"{path}.{key}") for key, inner in schema["properties"].items())
    if "items" in schema and shape.items:
        return compare(schema["items"], shape.items, f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict) and shape.values:
        return compare(schema["additionalProperties"], shape.values, path)
    # A status that nobody reads; an empty policy; the metadata of the object itself.
    assert not shape.ref or not fields_of(shape.ref) or path == ".metadata", path
    assert "items" not in schema, path
    return 0


@pytest.mark.parametrize("kind", MODELS)
def test_the_fields_that_are_known_should_be_those_of_the_crd(kind: str) -> None:
    (crd,) = (each for each in gen_crds.build_crds() if each["spec"]["names"]["kind"] == kind)
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert compare(schema, Shape(ref=f"trainer.v1alpha1.{kind}"), "") > 100


def pruned(value: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    unknown = prune(value, value["kind"])
    return value, unknown


def override(**fields: Any) -> dict[str, Any]:
    return {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], **fields}]}


def patch(**pods: Any) -> dict[str, Any]:
    jobs = [{"name": "node", "template": {"spec": {"template": pods}}}]
    template = {"spec": {"replicatedJobs": jobs}}
    return {"runtimePatches": [{"manager": "a.io/b", "trainingRuntimeSpec": {"template": template}}]}


OVERRIDE = "spec.podTemplateOverrides[0]"
PATCH = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template"


@pytest.mark.parametrize(
    ("given", "wanted", "path"),
    [
        ({"trainer": {"numNode": 3}}, {"trainer": {}}, "spec.trainer.numNode"),
        (
            {"trainer": {"resourcesPerNode": {"cpu": 4, "limits": {"cpu": 4}}}},
            {"trainer": {"resourcesPerNode": {"limits": {"cpu": 4}}}},
            "spec.trainer.resourcesPerNode.cpu",
        ),
        (
            {"trainer": {"env": [{"name": "A", "valeu": "x"}]}},
            {"trainer": {"env": [{"name": "A"}]}},
            "spec.trainer.env[0].valeu",
        ),
        (override(sepc={}), override(), f"{OVERRIDE}.sepc"),
        (override(metadata={"generateName": "x"}), override(metadata={}), f"{OVERRIDE}.metadata.generateName"),
        (override(spec={"hostNetwork": True}), override(spec={}), f"{OVERRIDE}.spec.hostNetwork"),
        (
            override(spec={"containers": [{"name": "node", "image": "x"}]}),
            override(spec={"containers": [{"name": "node"}]}),
            f"{OVERRIDE}.spec.containers[0].image",
        ),
        (
            override(spec={"tolerations": [{"key": "a", "foo": "b"}]}),
            override(spec={"tolerations": [{"key": "a"}]}),
            f"{OVERRIDE}.spec.tolerations[0].foo",
        ),
        (
            patch(spec={"volumes": [{"name": "v", "emptydir": {}}]}),
            patch(spec={"volumes": [{"name": "v"}]}),
            f"{PATCH}.spec.volumes[0].emptydir",
        ),
        (
            patch(spec={"affinity": {"nodeAfinity": {}}}),
            patch(spec={"affinity": {}}),
            f"{PATCH}.spec.affinity.nodeAfinity",
        ),
        (patch(spec={"$patch": "replace"}), patch(spec={}), f"{PATCH}.spec.$patch"),
    ],
)
def test_unknown_fields_of_a_trainjob_should_go_and_be_told(given: Any, wanted: Any, path: str) -> None:
    assert pruned(trainjob_json(**given)) == (trainjob_json(**wanted), [path])


@pytest.mark.parametrize("kind", ["TrainingRuntime", "ClusterTrainingRuntime"])
def test_unknown_fields_of_a_runtime_should_go_and_be_told(kind: str) -> None:
    wrong = job("node", "trainer", container(imgae="x"), pod={"future": {"a": 1}})
    wrong["template"]["spec"]["template"]["metadata"] = {"labels": {"a": "b"}, "uid": "1"}
    right = job()
    right["template"]["spec"]["template"]["metadata"] = {"labels": {"a": "b"}}
    value, unknown = pruned(runtime(wrong, kind=kind, mlPolicyy={}, mlPolicy={"torch": {"x": 1}}))
    assert value == runtime(right, kind=kind, mlPolicy={"torch": {}})
    assert unknown == [
        f"{POD}.spec.containers[0].imgae",
        f"{POD}.spec.future",
        f"{POD}.metadata.uid",
        "spec.mlPolicyy",
        "spec.mlPolicy.torch.x",
    ]


def test_the_metadata_of_an_object_should_be_known_as_an_api_server_writes_it() -> None:
    value = trainjob_json()
    value["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"fieldsV1": {"f:a": {}}}]}
    value["metadata"]["lables"] = {}
    assert pruned(value)[1] == ["metadata.lables"]
    assert value["metadata"]["managedFields"] == [{"fieldsV1": {"f:a": {}}}]


def test_what_encoders_write_into_all_metadata_should_go_without_a_word() -> None:
    value = runtime()
    pods = value["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    pods["metadata"] = {"creationTimestamp": None, "name": None}
    value["metadata"]["creationTimestamp"] = None
    assert pruned(value)[1] == []
    assert pods["metadata"] == {}
    pods["metadata"] = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    assert pruned(value)[1] == [f"{POD}.metadata.creationTimestamp"]


def test_null_should_go_from_objects_and_stay_in_lists() -> None:
    value, unknown = pruned(
        trainjob_json(
            suspend=None,
            labels={"a": None, "b": "c"},
            trainer={"env": None, "args": [None], "resourcesPerNode": {"limits": {"cpu": None, "memory": "1"}}},
            **patch(spec={"nodeSelector": {"a": None}, "tolerations": None, "affinity": {"nodeAffinity": None}}),
        )
    )
    assert unknown == []
    assert value == trainjob_json(
        labels={"b": "c"},
        trainer={"args": [None], "resourcesPerNode": {"limits": {"memory": "1"}}},
        **patch(spec={"nodeSelector": {}, "affinity": {}}),
    )


def test_values_of_the_wrong_type_should_be_left_to_others() -> None:
    value = trainjob_json(trainer=[{"env": None}], labels="x", podTemplateOverrides={"a": {"b": None}})
    assert pruned(value) == (trainjob_json(trainer=[{}], labels="x", podTemplateOverrides={"a": {}}), [])
