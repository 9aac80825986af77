"""What one line of a watch means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, cast

import msgspec

from ktrainer.kube.errors import status_error_of
from ktrainer.machinery.cache.delta import Bookmark, Put, Removal, Skip
from ktrainer.machinery.cache.objects import T
from ktrainer.machinery.cache.reflector.jsonparts import members_of

if TYPE_CHECKING:
    from ktrainer.kube.errors import ApiError
    from ktrainer.machinery.cache.delta import Event
    from ktrainer.machinery.cache.record import InformerRecord
    from ktrainer.machinery.cache.reflector.decoding import ObjectDecoder

_END_OF_INITIAL_EVENTS = "k8s.io/initial-events-end"


class Undecodable(Exception):
    """What the server sent makes no sense, and nothing that follows it can be trusted."""


class _Line(msgspec.Struct, Generic[T], gc=False):
    type: str
    object: T


class _LooseLine(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


class LineDecoder(Generic[T]):
    """Decodes the lines of the watches of one view."""

    def __init__(self, object_type: type[T], objects: ObjectDecoder[T], record: InformerRecord) -> None:
        self._objects = objects
        self._record = record
        # One pass for the envelope and the object in it: twice as fast as one after the other.
        line_type = msgspec.defstruct("Line", [("type", str), ("object", object_type)], gc=False)
        self._lines = cast("msgspec.json.Decoder[_Line[T]]", msgspec.json.Decoder(line_type))

    def decode(self, line: bytes) -> Event[T]:
        """Read one line. Raises Undecodable, or the ApiError that an ERROR event means."""
        try:
            event = self._lines.decode(line)
        except (ValueError, RecursionError) as error:
            return self._decode_odd(line, error)
        match event.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                change = _change_of(event.type, self._objects.accept(event.object))
            case "BOOKMARK" if event.object.metadata.resource_version:
                metadata = event.object.metadata
                is_end = metadata.annotations.get(_END_OF_INITIAL_EVENTS) == "true"
                change = Bookmark(metadata.resource_version, is_end)
            case _:
                return self._decode_odd(line, None)
        self._record.events[event.type] += 1
        return change

    def _decode_odd(self, line: bytes, error: Exception | None) -> Event[T]:
        """Read a line that is not one of a change or a bookmark as we know them."""
        kind, document = _split(line)
        if kind not in self._record.events:
            raise Undecodable(f"unknown event type {kind!r}")
        self._record.events[kind] += 1
        if kind == "ERROR":
            raise _error_of(document)
        if kind == "BOOKMARK" or error is None:
            raise Undecodable("a bookmark without a version")
        if isinstance(error, RecursionError):
            return _change_of(kind, self._objects.decode_deep(document, error))
        return _change_of(kind, self._objects.skip_unreadable(document, error))


def _change_of(kind: str, obj: T | Skip) -> Event[T]:
    """What happened to an object, by the type of the event."""
    if kind != "DELETED":
        return obj if isinstance(obj, Skip) else Put(obj)
    if not isinstance(obj, Skip):
        return Removal(obj.key, obj)
    # Of an object of which no more is known than its key: that it is gone.
    return obj if obj.key is None else Removal(obj.key, None)


def _split(line: bytes) -> tuple[str, bytes]:
    try:
        try:
            loose = msgspec.json.decode(line, type=_LooseLine)
        except RecursionError:
            members = members_of(line)
            return msgspec.json.decode(members.get("type", b""), type=str), members.get("object", b"")
    except ValueError as error:
        raise Undecodable(f"not an event: {error}") from error
    return loose.type, bytes(loose.object)


def _error_of(document: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(document)
    except (ValueError, RecursionError):
        status = None
    return status_error_of(status if isinstance(status, dict) else {})
