import asyncio
from typing import Any

import pytest

from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, CONFIG_MAPS, NAMESPACES, TRAINING_RUNTIMES, TRAINJOBS
from ktrainer.app.documents import Document, DocumentReader, run_now
from ktrainer.kube.identity import Resource
from ktrainer.kube.jsonvalue import copy_of
from support.training import runtime, trainjob_json

OBJECTS: list[dict[str, Any]] = [
    runtime(),
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "other"}, "data": {"x": "y"}},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}},
    {"apiVersion": "acme.io/v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
    {"kind": "Odd"},
    {"metadata": []},
]


def fetch(resource: Resource, namespace: str, name: str) -> Any:
    reader = DocumentReader([Document("f", number, each) for number, each in enumerate(OBJECTS, 1)], "mine")
    return run_now(reader.fetch(resource, namespace, name))


def test_objects_should_be_found_by_kind_namespace_and_name() -> None:
    assert fetch(CLUSTER_TRAINING_RUNTIMES, "", "rt") == OBJECTS[0]
    assert fetch(CONFIG_MAPS, "mine", "a") == OBJECTS[1]
    assert fetch(CONFIG_MAPS, "other", "a") == OBJECTS[2]
    assert fetch(NAMESPACES, "", "n") == OBJECTS[3]
    assert fetch(CONFIG_MAPS, "mine", "b") is None
    assert fetch(TRAINING_RUNTIMES, "mine", "rt") is None


def test_what_is_fetched_should_be_the_callers_to_change() -> None:
    fetch(CONFIG_MAPS, "other", "a")["data"]["x"] = "z"
    assert OBJECTS[2]["data"] == {"x": "y"}


def test_objects_of_ours_should_be_as_an_api_server_would_create_them() -> None:
    value = {**trainjob_json(suspend=None, typo=1), "status": {"future": 1}}
    before = copy_of(value)
    assert Document("f", 1, value).created() == (trainjob_json(), ["spec.typo"])
    assert value == before
    other = {"apiVersion": "acme.io/v1", "kind": "TrainJob", "spec": {"typo": None}}
    assert Document("f", 1, other).created() == (other, [])
    reader = DocumentReader([Document("f", 1, runtime(typo=1, mlPolicy=None))])
    assert run_now(reader.fetch(CLUSTER_TRAINING_RUNTIMES, "", "rt")) == runtime()


def test_a_document_should_say_where_it_is_and_what() -> None:
    assert str(Document("jobs.yaml", 3, trainjob_json())) == "jobs.yaml#3: TrainJob/demo"
    assert str(Document("-", 1, {})) == "-#1: /"
    assert str(Document("-", 1, {"kind": None, "metadata": {"name": None}})) == "-#1: /"
    assert Document("-", 1, trainjob_json()).gvk == TRAINJOBS.gvk


def test_a_coroutine_that_waits_should_be_refused() -> None:
    async def waits() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="waits for something"):
        run_now(waits())


def test_what_a_coroutine_raises_should_come_out() -> None:
    async def fails() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        run_now(fails())
