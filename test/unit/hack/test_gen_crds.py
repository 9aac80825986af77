from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import gen_crds

Schema = dict[str, Any]


@pytest.fixture(scope="module")
def crds() -> dict[str, Schema]:
    return {crd["spec"]["names"]["kind"]: crd for crd in gen_crds.build_crds()}


def schema_of(crd: Schema) -> Schema:
    schema: Schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def below(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema inside a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from below(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from below(schema[key], f"{path}[]")


def test_the_committed_files_should_be_current() -> None:
    assert gen_crds.main(["--check"]) == 0


def test_the_check_should_notice_stale_and_foreign_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gen_crds, "FOLDER", tmp_path / "config/crd")
    monkeypatch.setattr(gen_crds, "build_crds", lambda: [{"metadata": {"name": "jobs.example"}}])
    assert gen_crds.main(["--check"]) == 1
    assert "make generate" in capsys.readouterr().err
    assert gen_crds.main([]) == 0
    assert gen_crds.main(["--check"]) == 0
    assert [path.name for path in (tmp_path / "config/crd").iterdir()] == ["jobs.example.yaml"]
    (tmp_path / "config/crd/old.yaml").write_text("")
    assert gen_crds.main(["--check"]) == 1
    assert gen_crds.main([]) == 0
    assert gen_crds.main(["--check"]) == 0


def test_a_file_should_say_where_it_comes_from_and_hold_no_references() -> None:
    item = {"metadata": {"name": "a"}}
    text = gen_crds.render({"a": item, "b": item})
    assert "make generate" in text.splitlines()[0]
    assert yaml.safe_load(text) == {"a": item, "b": item}
    assert "&" not in text


def test_the_names_should_be_those_that_clients_use(crds: dict[str, Schema]) -> None:
    assert [crd["spec"]["names"] | {"scope": crd["spec"]["scope"]} for crd in crds.values()] == [
        {
            "kind": "TrainJob",
            "listKind": "TrainJobList",
            "plural": "trainjobs",
            "singular": "trainjob",
            "scope": "Namespaced",
        },
        {
            "kind": "TrainingRuntime",
            "listKind": "TrainingRuntimeList",
            "plural": "trainingruntimes",
            "singular": "trainingruntime",
            "scope": "Namespaced",
        },
        {
            "kind": "ClusterTrainingRuntime",
            "listKind": "ClusterTrainingRuntimeList",
            "plural": "clustertrainingruntimes",
            "singular": "clustertrainingruntime",
            "scope": "Cluster",
        },
    ]


def test_a_trainjob_should_show_its_state_and_be_scaled(crds: dict[str, Schema]) -> None:
    (version,) = crds["TrainJob"]["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    paths = {path for path, _ in below(schema)}
    columns = {column["name"]: column["jsonPath"] for column in version["additionalPrinterColumns"]}
    assert list(columns) == ["State", "Nodes", "Progress", "Runtime", "Age"]
    assert columns.pop("Age") == ".metadata.creationTimestamp"
    assert {*columns.values(), *version["subresources"]["scale"].values()} <= paths
    assert version["subresources"]["status"] == {}


def test_every_field_of_ours_should_have_a_description(crds: dict[str, Schema]) -> None:
    foreign = 0
    for crd in crds.values():
        for path, schema in below(schema_of(crd)):
            described = {name for name, inner in schema.get("properties", {}).items() if inner.get("description")}
            if path == "":
                described.add("metadata")
            # Either an object is ours and all of it is described, or it is foreign and nothing is.
            assert described in (set(), set(schema.get("properties", {}))), path
            foreign += not described
    assert foreign > 100


def test_no_rule_should_be_stated_twice(crds: dict[str, Schema]) -> None:
    for crd in crds.values():
        for path, schema in below(schema_of(crd)):
            rules = [rule["rule"] for rule in schema.get("x-kubernetes-validations", [])]
            assert len(rules) == len(set(rules)), path


def test_a_schema_should_be_structural(crds: dict[str, Schema]) -> None:
    for crd in crds.values():
        for path, schema in below(schema_of(crd)):
            assert "type" in schema or schema.get("x-kubernetes-int-or-string"), path
            assert not schema.keys() & {"$ref", "x-foreign", "title", "nullable"}, path
            for key in schema.get("x-kubernetes-list-map-keys", ()):
                item = schema["items"]
                assert key in item.get("required", ()) or "default" in item["properties"][key], path


@pytest.mark.parametrize(
    ("path", "defaults"),
    {
        ".spec.runtimeRef": {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"},
        ".spec": {"suspend": False, "managedBy": "trainer.kubeflow.org/trainjob-controller"},
        ".spec.trainer": {},
        ".status": {},
    }.items(),
)
def test_a_trainjob_should_have_these_defaults_and_no_others(
    crds: dict[str, Schema], path: str, defaults: dict[str, object]
) -> None:
    schema = dict(below(schema_of(crds["TrainJob"])))[path]
    assert {name: each["default"] for name, each in schema["properties"].items() if "default" in each} == defaults
