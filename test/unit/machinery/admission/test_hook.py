from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import given, settings

from ktrainer.kube.identity import GroupVersionKind, ObjectKey
from ktrainer.kube.jsonvalue import are_same, copy_of
from ktrainer.kube.patches import apply
from ktrainer.machinery.admission.hook import (
    AdmissionRequest,
    Operation,
    allowed,
    denied,
    errored,
    patched,
    path_of,
)
from support.cases import cases
from support.jsonvalues import OBJECTS


def request(**fields: Any) -> AdmissionRequest:
    document = {
        "uid": "u",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "resource": {"group": "batch", "version": "v1", "resource": "jobs"},
        "operation": "CREATE",
        **fields,
    }
    return msgspec.json.decode(orjson.dumps(document), type=AdmissionRequest)


@pytest.mark.parametrize(
    "fields, objects",
    [
        pytest.param({"operation": "CREATE", "object": {"a": 1}}, (b'{"a":1}', None), id="create"),
        pytest.param(
            {"operation": "UPDATE", "object": {"a": 2}, "oldObject": {"a": 1}}, (b'{"a":2}', b'{"a":1}'), id="update"
        ),
        pytest.param({"operation": "DELETE", "object": None, "oldObject": {}}, (None, b"{}"), id="delete"),
    ],
)
def test_objects_should_be_there_as_the_operation_has_it(
    fields: dict[str, Any], objects: tuple[bytes | None, bytes | None]
) -> None:
    made = request(**fields)
    assert (made.object, made.old_object) == objects
    assert made.operation is Operation(fields["operation"])


def test_all_that_a_review_tells_should_be_readable() -> None:
    made = request(
        name="n",
        namespace="s",
        subResource="scale",
        dryRun=True,
        requestKind={"group": "batch", "version": "v1beta1", "kind": "Job"},
        requestResource={"group": "batch", "version": "v1beta1", "resource": "jobs"},
        requestSubResource="scale",
        options={"kind": "CreateOptions"},
        userInfo={"username": "me", "groups": ["a"], "extra": {"k": ["v"]}},
    )
    assert made.kind.gvk == GroupVersionKind("batch", "v1", "Job")
    assert made.request_kind is not None
    assert made.request_kind.gvk.version == "v1beta1"
    assert made.request_resource is not None
    assert (made.request_resource.version, made.request_sub_resource) == ("v1beta1", "scale")
    assert (made.key, made.sub_resource, made.dry_run) == (ObjectKey("s", "n"), "scale", True)
    assert (made.user_info.username, made.user_info.groups, made.user_info.extra) == ("me", ("a",), {"k": ("v",)})
    assert orjson.loads(bytes(made.options)) == {"kind": "CreateOptions"}


@settings(max_examples=cases(4_000))
@given(OBJECTS, OBJECTS)
def test_the_patch_should_make_the_new_object_of_the_old(old: dict[str, Any], new: dict[str, Any]) -> None:
    kept = copy_of(new)
    response = patched(request(object=old), new)
    assert response.is_allowed
    assert are_same(apply(list(response.patch), old), kept)
    assert bool(response.patch) != are_same(old, new)


def test_a_handler_should_be_free_to_change_what_it_decoded() -> None:
    made = request(object={"a": {"b": 1}})
    assert made.object is not None
    changed = orjson.loads(made.object)
    changed["a"]["b"] = 2
    assert patched(made, changed).patch == ({"op": "replace", "path": "/a/b", "value": 2},)


def test_an_object_that_is_not_there_should_not_be_patched() -> None:
    with pytest.raises(ValueError, match="DELETE has no object to change"):
        patched(request(operation="DELETE"), {})


def test_answers_should_say_what_they_are_called() -> None:
    assert allowed(warnings=("w",)).is_allowed
    assert allowed(warnings=("w",)).warnings == ("w",)
    no = denied("because")
    assert (no.is_allowed, no.code, no.reason, no.message) == (False, 403, "Forbidden", "because")
    failure = errored(500, "InternalError", "oops")
    assert (failure.is_allowed, failure.code, failure.reason, failure.message) == (False, 500, "InternalError", "oops")


@pytest.mark.parametrize(
    "group, path",
    [
        ("trainer.example.org", "/mutate-trainer-example-org-v1-job"),
        ("batch", "/mutate-batch-v1-job"),
        ("", "/mutate--v1-job"),
    ],
)
def test_a_path_should_spell_the_kind(group: str, path: str) -> None:
    gvk = GroupVersionKind(group, "v1", "Job")
    assert path_of(gvk, is_mutating=True) == path
    assert path_of(gvk, is_mutating=False) == path.replace("mutate", "validate")
