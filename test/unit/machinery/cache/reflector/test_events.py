from typing import Any

import orjson
import pytest

from ktrainer.kube.errors import ApiError, Expired, InternalError, TooManyRequests
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.cache.delta import Bookmark, Put, Removal, Skip
from ktrainer.machinery.cache.objects import CachedObject, decoded
from ktrainer.machinery.cache.record import InformerRecord, SkipReason
from ktrainer.machinery.cache.reflector.decoding import ObjectDecoder
from ktrainer.machinery.cache.reflector.events import LineDecoder, Undecodable
from ktrainer.machinery.cache.reflector.skips import Skips
from ktrainer.machinery.cache.source import View
from support.modelevents import bookmark_line, line_of, status_of
from support.modelserver import WIDGETS

KIND = {"apiVersion": "example.com/v1", "kind": "Widget"}
METADATA = {"name": "a", "namespace": "ns", "resourceVersion": "5"}
DEEP = b"[" * 2000 + b"]" * 2000


@pytest.fixture
def record() -> InformerRecord:
    return InformerRecord()


@pytest.fixture
def decoder(record: InformerRecord) -> LineDecoder[CachedObject]:
    objects = ObjectDecoder(View(WIDGETS, CachedObject), Skips("test", record))
    return LineDecoder(CachedObject, objects, record)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED"])
def test_an_object_that_is_there_should_be_put(
    decoder: LineDecoder[CachedObject], record: InformerRecord, kind: str
) -> None:
    event = decoder.decode(line_of(kind, {**KIND, "metadata": METADATA, "spec": {"n": 1}}))
    assert isinstance(event, Put)
    assert event.obj.key == ObjectKey("ns", "a")
    assert bytes(event.obj.spec) == b'{"n":1}'
    assert record.events[kind] == 1


def test_an_object_that_is_gone_should_be_removed(decoder: LineDecoder[CachedObject], record: InformerRecord) -> None:
    event = decoder.decode(line_of("DELETED", {**KIND, "metadata": METADATA}))
    assert isinstance(event, Removal)
    assert event.key == ObjectKey("ns", "a")
    assert event.obj is not None
    assert record.events["DELETED"] == 1


def test_a_bookmark_should_be_no_object(decoder: LineDecoder[CachedObject], record: InformerRecord) -> None:
    assert decoder.decode(bookmark_line(KIND, 7)) == Bookmark("7", False)
    assert decoder.decode(bookmark_line(KIND, 8, is_end=True)) == Bookmark("8", True)
    false_end: dict[str, Any] = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "false"}}
    assert decoder.decode(line_of("BOOKMARK", {**KIND, "metadata": false_end})) == Bookmark("9", False)
    assert record.events["BOOKMARK"] == 3


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (410, "Expired", Expired),
        (410, "Gone", Expired),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", InternalError),
        (0, "", ApiError),
    ],
)
def test_an_error_in_the_stream_should_be_the_error_that_it_tells_of(
    decoder: LineDecoder[CachedObject], record: InformerRecord, code: int, reason: str, error: type[ApiError]
) -> None:
    with pytest.raises(error):
        decoder.decode(line_of("ERROR", status_of(code, reason)))
    assert record.events["ERROR"] == 1


@pytest.mark.parametrize("document", [b"{}", b"[]", b'"text"', b"null", DEEP])
def test_an_error_without_an_explanation_should_still_be_one(
    decoder: LineDecoder[CachedObject], document: bytes
) -> None:
    with pytest.raises(ApiError):
        decoder.decode(b'{"type":"ERROR","object":' + document + b"}")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"type":7,"object":{}}',
        b'{"type":"ADDED","object":{"metadata":{"name":"a"}',
        b'{"object":' + DEEP + b"}",
        line_of("RENAMED", {**KIND, "metadata": METADATA}),
        line_of("RENAMED", {"metadata": 7}),
        line_of("BOOKMARK", {**KIND, "metadata": {}}),
        line_of("BOOKMARK", {**KIND, "metadata": {"resourceVersion": 5}}),
    ],
)
def test_a_line_that_makes_no_sense_should_discredit_the_stream(
    decoder: LineDecoder[CachedObject], line: bytes
) -> None:
    with pytest.raises(Undecodable):
        decoder.decode(line)


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
@pytest.mark.parametrize(
    "obj", [{"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": METADATA}, {**KIND, "metadata": {}}]
)
def test_an_object_of_another_kind_should_be_passed_over(
    decoder: LineDecoder[CachedObject], record: InformerRecord, kind: str, obj: dict[str, Any]
) -> None:
    assert decoder.decode(line_of(kind, obj)) == Skip(None)
    assert record.skips[SkipReason.WRONG_KIND] == 1


def test_of_an_object_that_is_nested_too_deep_the_rest_should_be_kept(decoder: LineDecoder[CachedObject]) -> None:
    line = line_of("MODIFIED", {**KIND, "metadata": METADATA, "spec": orjson.Fragment(DEEP)})
    event = decoder.decode(line)
    assert isinstance(event, Put)
    assert (event.obj.key, decoded(event.obj.spec)) == (ObjectKey("ns", "a"), "nested too deeply")
    removal = decoder.decode(line.replace(b"MODIFIED", b"DELETED"))
    assert isinstance(removal, Removal)
    assert removal.key == ObjectKey("ns", "a")


def test_an_object_that_cannot_be_read_should_be_passed_over(
    decoder: LineDecoder[CachedObject], record: InformerRecord
) -> None:
    metadata = b'{"name":"a","namespace":"ns","resourceVersion":"5","labels":null}'
    line = b'{"type":"MODIFIED","object":{"metadata":' + metadata + b',"spec":{"n":1}}}'
    assert decoder.decode(line) == Skip(ObjectKey("ns", "a"))
    assert record.skips[SkipReason.UNDECODABLE] == 1
    # Its last state does not matter any more: that it is gone does.
    assert decoder.decode(line.replace(b"MODIFIED", b"DELETED")) == Removal(ObjectKey("ns", "a"), None)


def test_a_deletion_of_nobody_knows_what_should_be_passed_over(decoder: LineDecoder[CachedObject]) -> None:
    assert decoder.decode(b'{"type":"DELETED","object":{"metadata":[]}}') == Skip(None)


def test_a_deletion_should_count_even_if_the_transform_fails(record: InformerRecord) -> None:
    def fail(obj: CachedObject) -> CachedObject:
        raise RuntimeError(obj.metadata.name)

    objects = ObjectDecoder(View(WIDGETS, CachedObject, transform=fail), Skips("test", record))
    decoder = LineDecoder(CachedObject, objects, record)
    line = line_of("DELETED", {**KIND, "metadata": METADATA})
    assert decoder.decode(line) == Removal(ObjectKey("ns", "a"), None)
    assert decoder.decode(line.replace(b"DELETED", b"MODIFIED")) == Skip(ObjectKey("ns", "a"))
