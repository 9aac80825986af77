import msgspec
import pytest

from ktrainer.machinery.cache.objects import CachedObject, decoded, is_same_version, settle_identity
from ktrainer.machinery.cache.stringpool import StringPool
from support.widgets import widget


def test_an_object_should_not_keep_the_line_that_it_came_from() -> None:
    line = bytearray(b'{"metadata":{"name":"a"},"spec":{"n":1},"status":{"ready":2}}')
    obj = msgspec.json.decode(line, type=CachedObject)
    line[:] = b"x" * len(line)
    assert (bytes(obj.spec), bytes(obj.status)) == (b'{"n":1}', b'{"ready":2}')


def test_decoding_should_give_a_value_of_ones_own_each_time() -> None:
    obj = widget(spec={"list": [1, {"deep": True}]})
    first = decoded(obj.spec)
    first["list"][1]["deep"] = False
    first["more"] = 1
    assert decoded(obj.spec) == {"list": [1, {"deep": True}]}


def test_what_an_object_does_not_have_should_be_none() -> None:
    obj = msgspec.json.decode(b'{"metadata":{"name":"a"}}', type=CachedObject)
    assert decoded(obj.spec) is None
    assert decoded(obj.status) is None


def test_numbers_should_survive_as_they_are() -> None:
    big = 2**63 + 12345
    assert decoded(widget(spec={"n": 9007199254740993}).spec) == {"n": 9007199254740993}
    assert decoded(msgspec.Raw(str(big).encode())) == big


def test_objects_should_be_frozen() -> None:
    obj = widget()
    with pytest.raises(AttributeError):
        obj.spec = msgspec.Raw(b"{}")  # type: ignore[misc]
    with pytest.raises(AttributeError):
        obj.metadata.name = "b"  # type: ignore[misc]


def test_an_update_with_an_equal_version_should_bring_nothing_new() -> None:
    assert is_same_version(widget(version=7), widget(version=7))
    assert not is_same_version(widget(version=7), widget(version=8))


def test_objects_should_share_what_they_have_in_common() -> None:
    pool = StringPool()
    document = b'{"metadata":{"name":"%s","namespace":"team","labels":{"%s":"1"},"annotations":{"%s":"2"}}}'
    long_key = b"example.com/a-key-that-is-longer-than-decoders-care-to-remember"
    first, second = (
        msgspec.json.decode(document % (name, long_key, long_key[::-1]), type=CachedObject) for name in (b"a", b"b")
    )
    for obj in (first, second):
        settle_identity(obj, "example.com/v1", "Widget", pool)
    assert (first.api_version, first.kind, first.metadata.labels) == (
        "example.com/v1",
        "Widget",
        {long_key.decode(): "1"},
    )
    assert first.metadata.namespace is second.metadata.namespace
    assert next(iter(first.metadata.labels)) is next(iter(second.metadata.labels))
    assert next(iter(first.metadata.annotations)) is next(iter(second.metadata.annotations))
