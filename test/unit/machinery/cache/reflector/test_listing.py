from typing import Any

import orjson
import pytest

from ktrainer.machinery.cache.record import InformerRecord
from ktrainer.machinery.cache.reflector.decoding import ObjectDecoder
from ktrainer.machinery.cache.reflector.events import Undecodable
from ktrainer.machinery.cache.reflector.listing import Lister
from ktrainer.machinery.cache.reflector.skips import Skips
from ktrainer.machinery.cache.source import Source
from support.informers import WIDGET_VIEW
from support.modelserver import ModelServer

DEEP = b"[" * 1500 + b"]" * 1500


class OneAnswer(ModelServer):
    """A server that answers every list with the same bytes."""

    answer: bytes = b""

    async def list_page(self, *_: Any, **__: Any) -> bytes:
        return self.answer


def lister_of(answer: bytes) -> Lister[Any]:
    server = OneAnswer()
    server.answer = answer
    return Lister(Source(WIDGET_VIEW, server), ObjectDecoder(WIDGET_VIEW, Skips("test", InformerRecord())))


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"kind":"WidgetList","metadata":{}}',
        b'{"kind":"WidgetList","metadata":{"resourceVersion":7}}',
        b'{"kind":"Table","metadata":{"resourceVersion":"7"},"rows":[]}',
        b'{"kind":"Status","metadata":{"resourceVersion":"7"}}',
        b'{"kind":"WidgetList","metadata":{"resourceVersion":"7"},"items":7}',
        b'{"metadata":{"resourceVersion":"7"},"items":' + DEEP + b"}",
    ],
)
async def test_an_answer_that_is_no_list_should_not_be_taken_for_an_empty_one(answer: bytes) -> None:
    with pytest.raises(Undecodable):
        await lister_of(answer).fetch(lambda: None, 0)


@pytest.mark.parametrize("items", [b"null", b"[]"])
async def test_no_items_should_be_an_empty_list(items: bytes) -> None:
    answer = b'{"kind":"WidgetList","metadata":{"resourceVersion":"7","continue":""},"items":' + items + b"}"
    snapshot = await lister_of(answer).fetch(lambda: None, 3)
    assert (snapshot.objects, snapshot.resource_version, snapshot.mark) == ({}, "7", 3)


async def test_items_that_cannot_be_read_should_be_named() -> None:
    items: list[dict[str, Any]] = [
        {"metadata": {"name": name, "namespace": "ns", "resourceVersion": "5"}, "spec": spec}
        for name, spec in (("a", 1), ("deep", orjson.Fragment(DEEP)), ("b", 2))
    ]
    items.append({"metadata": {"name": "odd", "namespace": "ns", "labels": []}, "spec": 1})
    answer = {"kind": "WidgetList", "metadata": {"resourceVersion": "7"}, "items": items}
    snapshot = await lister_of(orjson.dumps(answer)).fetch(lambda: None, 0)
    assert [str(key) for key in snapshot.objects] == ["ns/a", "ns/deep", "ns/b"]
    assert {str(key) for key in snapshot.unreadable} == {"ns/odd"}
