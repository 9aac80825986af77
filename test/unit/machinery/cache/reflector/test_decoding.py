from typing import Any

import msgspec
import orjson
import pytest
from structlog.testing import capture_logs

from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.cache.delta import Skip
from ktrainer.machinery.cache.objects import CachedObject, decoded
from ktrainer.machinery.cache.record import InformerRecord, SkipReason
from ktrainer.machinery.cache.reflector.decoding import ObjectDecoder
from ktrainer.machinery.cache.reflector.skips import Skips
from ktrainer.machinery.cache.source import View
from support.modelserver import WIDGETS

NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
METADATA = {"name": "a", "namespace": "ns", "resourceVersion": "5"}
KIND = {"apiVersion": "example.com/v1", "kind": "Widget"}
DEEP = b"[" * 2000 + b"]" * 2000


class ConfigMap(CachedObject, gc=False, frozen=True, rename="camel", kw_only=True):
    data: dict[str, str] = msgspec.field(default_factory=dict)


def decoder_of(view: View[CachedObject], record: InformerRecord | None = None) -> ObjectDecoder[CachedObject]:
    return ObjectDecoder(view, Skips("test", record or InformerRecord()))


def widget_json(**fields: Any) -> bytes:
    return orjson.dumps({**KIND, "metadata": METADATA, **fields})


def test_an_item_without_a_kind_should_get_the_one_that_was_asked_for() -> None:
    obj = decoder_of(View(WIDGETS, CachedObject)).decode(orjson.dumps({"metadata": METADATA}))
    assert isinstance(obj, CachedObject)
    assert (obj.api_version, obj.kind) == ("example.com/v1", "Widget")


def test_metadata_should_become_an_object_of_its_kind() -> None:
    decoder = decoder_of(View(WIDGETS, CachedObject, metadata_only=True))
    obj = decoder.decode(
        orjson.dumps({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": METADATA})
    )
    assert isinstance(obj, CachedObject)
    assert (obj.api_version, obj.kind, obj.key) == ("example.com/v1", "Widget", ObjectKey("ns", "a"))
    assert isinstance(decoder.decode(widget_json()), Skip)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"kind": "Gadget"}, id="another kind"),
        pytest.param({"apiVersion": "example.com/v2"}, id="another version"),
        pytest.param({"kind": "Table", "apiVersion": "meta.k8s.io/v1"}, id="a table"),
        pytest.param({"metadata": {}}, id="no metadata"),
        pytest.param({"metadata": {"namespace": "ns", "resourceVersion": "5"}}, id="no name"),
        pytest.param({"metadata": {"name": "a", "resourceVersion": "5"}}, id="no namespace"),
        pytest.param({"metadata": {"name": "a", "namespace": "ns"}}, id="no version"),
    ],
)
def test_what_is_none_of_ours_should_be_passed_over(fields: dict[str, Any]) -> None:
    record = InformerRecord()
    assert isinstance(decoder_of(View(WIDGETS, CachedObject), record).decode(widget_json(**fields)), Skip)
    assert record.skips[SkipReason.WRONG_KIND] == 1


def test_cluster_scoped_objects_should_have_no_namespace() -> None:
    decoder = decoder_of(View(NODES, CachedObject, namespace="ignored"))
    assert isinstance(decoder.decode(orjson.dumps({"metadata": {"name": "n", "resourceVersion": "1"}})), CachedObject)
    assert isinstance(decoder.decode(orjson.dumps({"metadata": METADATA})), Skip)


@pytest.mark.parametrize(
    ("document", "key"),
    [
        pytest.param(widget_json(data={"n": 1}), ObjectKey("ns", "a"), id="wrong type"),
        pytest.param(
            widget_json(metadata={**METADATA, "labels": None}), ObjectKey("ns", "a"), id="null where a map should be"
        ),
        pytest.param(
            b'{"metadata":{"name":"a","namespace":"ns"},"data":' + DEEP + b"}", ObjectKey("ns", "a"), id="too deep"
        ),
        pytest.param(b'{"metadata":{"name":"a","labels":' + DEEP + b"}}", None, id="metadata too deep"),
        pytest.param(widget_json(metadata={"name": 7}), None, id="name of a wrong type"),
        pytest.param(b'{"metadata":{"name":"a\\ud800"}}', None, id="half a surrogate pair"),
        pytest.param(b'{"metadata":{"name":"\xff"}}', None, id="not UTF-8"),
        pytest.param(b"[]", None, id="no object"),
        pytest.param(b"", None, id="nothing"),
    ],
)
def test_what_cannot_be_read_should_be_passed_over(document: bytes, key: ObjectKey | None) -> None:
    record = InformerRecord()
    decoder = ObjectDecoder(View(WIDGETS, ConfigMap), Skips("test", record))
    assert decoder.decode(document) == Skip(key)
    assert record.skips[SkipReason.UNDECODABLE] == 1


def test_of_what_is_nested_too_deep_the_rest_should_be_kept() -> None:
    spec, status = b"[" * 2000 + b"]" * 2000, b'{"ok": [1]}'
    document = b'{"metadata":%b,"spec":%b,"status":%b}' % (orjson.dumps(METADATA), spec, status)
    obj = decoder_of(View(WIDGETS, CachedObject)).decode(document)
    assert isinstance(obj, CachedObject)
    assert (obj.key, decoded(obj.spec), decoded(obj.status)) == (
        ObjectKey("ns", "a"),
        "nested too deeply",
        {"ok": [1]},
    )


def test_a_transform_should_see_every_object_before_anybody_else() -> None:
    def strip(obj: CachedObject) -> CachedObject:
        obj.metadata.annotations.clear()
        return obj

    decoder = decoder_of(View(WIDGETS, CachedObject, transform=strip))
    obj = decoder.decode(widget_json(metadata={**METADATA, "annotations": {"a": "b"}}))
    assert isinstance(obj, CachedObject)
    assert obj.metadata.annotations == {}


def test_a_transform_that_raises_should_only_hurt_its_object() -> None:
    record = InformerRecord()

    def fail(obj: CachedObject) -> CachedObject:
        raise RuntimeError(obj.metadata.name)

    with capture_logs() as logs:
        skip = decoder_of(View(WIDGETS, CachedObject, transform=fail), record).decode(widget_json())
    assert skip == Skip(ObjectKey("ns", "a"))
    assert record.skips[SkipReason.TRANSFORM] == 1
    assert "RuntimeError" in logs[0]["detail"]


def test_a_kind_with_more_than_spec_and_status_should_keep_what_its_type_names() -> None:
    decoder = ObjectDecoder(View(WIDGETS, ConfigMap), Skips("test", InformerRecord()))
    obj = decoder.decode(widget_json(data={"a": "b"}, binaryData={"x": "eQ=="}))
    assert isinstance(obj, ConfigMap)
    assert obj.data == {"a": "b"}
