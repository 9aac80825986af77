from __future__ import annotations

import msgspec
import pytest

from ktrainer.kube.identity import GroupVersionKind, ObjectKey
from ktrainer.kube.meta import ObjectMeta, OwnerReference

OWNER = OwnerReference("batch/v1", "Job", "train", "u-1", controller=True, block_owner_deletion=True)

FULL = b"""{
  "name": "train-0", "namespace": "team", "uid": "u-2", "resourceVersion": "12", "generation": 9007199254740993,
  "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": "2026-01-02T03:05:05Z",
  "labels": {"a": "1"}, "annotations": {"b": "2"}, "finalizers": ["x/y"],
  "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-1",
                       "controller": true, "blockOwnerDeletion": true}],
  "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:spec": {}}}], "selfLink": "/old"
}"""


def test_metadata_should_be_read_and_the_rest_skipped() -> None:
    meta = msgspec.json.decode(FULL, type=ObjectMeta)
    assert meta == ObjectMeta(
        name="train-0",
        namespace="team",
        uid="u-2",
        resource_version="12",
        generation=9007199254740993,
        creation_timestamp="2026-01-02T03:04:05Z",
        deletion_timestamp="2026-01-02T03:05:05Z",
        labels={"a": "1"},
        annotations={"b": "2"},
        owner_references=(OWNER,),
        finalizers=("x/y",),
    )
    assert meta.key == ObjectKey("team", "train-0")
    assert meta.is_deleting
    assert OWNER.gvk == GroupVersionKind("batch", "v1", "Job")


def test_absent_and_null_fields_should_have_their_empty_value() -> None:
    meta = msgspec.json.decode(b'{"name": "a", "creationTimestamp": null, "deletionTimestamp": null}', type=ObjectMeta)
    assert meta == ObjectMeta(name="a")
    assert not meta.is_deleting
    assert meta.labels == {}
    assert meta.owner_references == ()


def test_empty_fields_should_not_be_written() -> None:
    assert msgspec.json.encode(ObjectMeta(name="a")) == b'{"name":"a"}'
    assert msgspec.to_builtins(OWNER) == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "train",
        "uid": "u-1",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_shared_metadata_should_refuse_writes() -> None:
    with pytest.raises(AttributeError):
        ObjectMeta(name="a").name = "b"  # type: ignore[misc]  # the point of the test
