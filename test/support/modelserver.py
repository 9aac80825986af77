"""A model of an API server that serves one resource, in virtual time and without sockets.

Implements what an informer asks of a client: objects with resourceVersions, a history that can be compacted, lists in
pages whose tokens expire, watches with bookmarks, streams that begin with the state and the ways in which servers
refuse those, ERROR events, cuts, silence, and a restore from an older state.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

import orjson

from ktrainer.client.errors import ConnectionLost
from ktrainer.client.selectors import EVERYTHING, Selectors
from ktrainer.kube.identity import ObjectKey, Resource
from support.modelevents import (
    Change,
    Json,
    api_error,
    bookmark_line,
    change_line,
    is_selected,
    line_of,
    shown,
    status_of,
    without_kind,
)
from support.modelstream import ModelStream

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

GRACE_SECONDS = 30.0
"""How long after the time that the server is given the client ends a watch."""

WIDGETS = Resource("example.com", "v1", "Widget", "widgets", namespaced=True)


class InitialEvents(Enum):
    """What becomes of a watch that asks for the state first."""

    SERVED = auto()
    INVALID = auto()
    """422: the server does not have the feature."""
    UNSUPPORTED = auto()
    """200, and then an ERROR event: the server has the feature, its database has not."""
    NOT_READY = auto()
    """429."""


@dataclass(frozen=True)
class Asked:
    """A request as the server saw it."""

    verb: str
    at: float
    resource_version: str = ""
    continue_token: str = ""
    limit: int = 0
    initial_events: bool = False
    timeout_seconds: int = 0
    idle_seconds: float | None = None
    namespace: str = ""
    selectors: Selectors = EVERYTHING
    metadata_only: bool = False

    def __str__(self) -> str:
        if self.verb == "watch":
            return f"{'state' if self.initial_events else 'watch'} {self.resource_version}".strip()
        if self.limit == 1:
            return "probe"
        return "page" if self.continue_token else "list"


@dataclass
class ModelServer:
    """The server. Plain functions are what happens to it; the two of `ListerWatcher` are what clients do."""

    resource: Resource = WIDGETS
    initial_events: InitialEvents = InitialEvents.SERVED
    bookmark_seconds: float | None = 60.0
    end_bookmark_seconds: float | None = 0.0
    """How long after the state the bookmark that ends it comes; None for never."""
    max_page: int = 500
    """Items in a page, whatever the client allows for."""
    page_seconds: float = 0.0
    """How long a page of a list takes."""
    gone_as_status: bool = False
    """Whether a watch from a forgotten revision is answered with 410, instead of 200 and an ERROR event."""
    items_have_kind: bool = True
    refusals: dict[str, deque[Exception]] = field(default_factory=lambda: {"list": deque(), "watch": deque()})
    """What the next requests of a verb are answered with."""
    outage: Exception | None = None
    """What all requests are answered with until further notice."""
    next_budget: int | None = None
    """The bytes after which the next watch breaks."""
    asked: list[Asked] = field(default_factory=list)
    revision: int = 100
    compacted: int = 0
    """Changes up to this revision are forgotten."""
    objects: dict[ObjectKey, Json] = field(default_factory=dict)
    streams: list[ModelStream] = field(default_factory=list)
    _history: list[Change] = field(default_factory=list)
    _pages: dict[str, tuple[int, list[Json]]] = field(default_factory=dict)
    """What is left of a list, by token, with the revision of the list."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def create(self, name: str, namespace: str = "default", **fields: Any) -> ObjectKey:
        key = ObjectKey(namespace if self.resource.namespaced else "", name)
        metadata = {"name": name, "uid": f"uid-{next(self._numbers)}", "generation": 1, **fields.pop("metadata", {})}
        if key.namespace:
            metadata["namespace"] = namespace
        self.write(key, {"metadata": metadata, "spec": {"n": 0}, **fields})
        return key

    def update(self, key: ObjectKey, **fields: Any) -> None:
        old = self.objects[key]
        metadata = {**old["metadata"], **fields.pop("metadata", {})}
        self.write(key, {**old, "spec": {"n": old["spec"]["n"] + 1}, **fields, "metadata": metadata})

    def delete(self, key: ObjectKey) -> None:
        self.write(key, None)

    def write(self, key: ObjectKey, new: Json | None) -> None:
        self.revision += 1
        old = self.objects.pop(key, None)
        if new is not None:
            kind = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
            new = {**kind, **new, "metadata": {**new["metadata"], "resourceVersion": str(self.revision)}}
            self.objects[key] = new
        change = Change(self.revision, old, new)
        self._history.append(change)
        for stream in self.streams:
            _tell(stream, change)

    def compact(self) -> None:
        """Forget all changes so far, and with them the pages of lists that are under way."""
        self.compacted = self.revision
        self._history.clear()
        self._pages.clear()

    def bookmark(self) -> None:
        """Send a bookmark to all streams that are not ahead of the server."""
        for stream in self.streams:
            self._send_bookmark(stream)

    def send_error(self, code: int, reason: str) -> None:
        """Send an ERROR event to all streams, and end them."""
        for stream in self.streams:
            stream.send(line_of("ERROR", status_of(code, reason)))
            stream.end()

    def send(self, line: bytes) -> None:
        for stream in self.streams:
            stream.send(line)

    def end(self) -> None:
        for stream in self.streams:
            stream.end()

    def cut(self) -> None:
        for stream in self.streams:
            stream.break_off(ConnectionLost("cut"))

    def freeze(self) -> None:
        """Let all streams that are open fall silent for ever."""
        for stream in self.streams:
            stream.is_frozen = True

    def snapshot(self) -> tuple[int, dict[ObjectKey, Json]]:
        return self.revision, dict(self.objects)

    def restore(self, snapshot: tuple[int, dict[ObjectKey, Json]]) -> None:
        """Go back to an older state, and an older revision; all connections break."""
        self.compact()
        self.revision, self.objects = snapshot[0], dict(snapshot[1])
        self.compacted = self.revision
        self.cut()

    def summary(self) -> list[str]:
        """What was asked, in words: a `state` or a `watch` with its version, a `list`, `page` or `probe`."""
        return [str(asked) for asked in self.asked]

    def take(self) -> list[str]:
        """Return the same, and forget it."""
        summary, self.asked = self.summary(), []
        return summary

    async def list_page(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
        limit: int = 500,
        continue_token: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
    ) -> bytes:
        self._note(
            "list",
            resource_version=resource_version,
            continue_token=continue_token,
            limit=limit,
            namespace=namespace,
            selectors=selectors,
            metadata_only=metadata_only,
        )
        await asyncio.sleep(self.page_seconds)
        self._check("list")
        if not continue_token:
            chosen = (self.objects[key] for key in sorted(self.objects))
            items = [item for item in chosen if is_selected(item, namespace, selectors)]
            revision = self.revision
        elif continue_token in self._pages:
            revision, items = self._pages.pop(continue_token)
        else:
            raise api_error(410, "Expired")
        size = min(limit, self.max_page) if limit else len(items)
        page, rest = items[:size], items[size:]
        metadata = {"resourceVersion": str(revision)}
        if rest:
            metadata["continue"] = f"{revision}:{next(self._numbers)}"
            self._pages[metadata["continue"]] = (revision, rest)
        page = [shown(item, metadata_only=metadata_only) for item in page]
        if not self.items_have_kind:
            page = [without_kind(item) for item in page]
        kind = "PartialObjectMetadataList" if metadata_only else f"{resource.kind}List"
        return orjson.dumps({"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": page})

    @contextlib.asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
        resource_version: str,
        timeout_seconds: int,
        initial_events: bool = False,
        metadata_only: bool = False,
        idle_seconds: float | None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self._note(
            "watch",
            resource_version=resource_version,
            initial_events=initial_events,
            timeout_seconds=timeout_seconds,
            idle_seconds=idle_seconds,
            namespace=namespace,
            selectors=selectors,
            metadata_only=metadata_only,
        )
        self._check("watch")
        stream = ModelStream(int(resource_version or 0), namespace, selectors, metadata_only=metadata_only)
        stream.budget, self.next_budget = self.next_budget, None
        if initial_events:
            self._begin_with_state(stream)
        else:
            self._begin(stream)
        if self.bookmark_seconds is not None:
            stream.every(self.bookmark_seconds, lambda: self._send_bookmark(stream))
            stream.after_seconds(timeout_seconds - 2, lambda: self._send_bookmark(stream))
        stream.after_seconds(timeout_seconds, stream.end)
        stream.after_seconds(timeout_seconds + GRACE_SECONDS, stream.expire)
        self.streams.append(stream)
        try:
            yield stream.lines(idle_seconds)
        finally:
            self.streams.remove(stream)
            stream.close()

    def _begin(self, stream: ModelStream) -> None:
        if stream.after >= self.compacted:
            for change in self._history:
                _tell(stream, change)
        elif self.gone_as_status:
            raise api_error(410, "Gone")
        else:
            stream.send(line_of("ERROR", status_of(410, "Expired")))
            stream.end()

    def _begin_with_state(self, stream: ModelStream) -> None:
        match self.initial_events:
            case InitialEvents.INVALID:
                raise api_error(422, "Invalid")
            case InitialEvents.NOT_READY:
                raise api_error(429, "TooManyRequests", retry_after=1)
            case InitialEvents.UNSUPPORTED:
                stream.send(line_of("ERROR", status_of(500, "InternalError")))
                stream.end()
                return
        if stream.after > self.revision:
            raise api_error(504, "Timeout", cause="ResourceVersionTooLarge")
        # Not in the order of their revisions: a state is not a history.
        for key in sorted(self.objects, reverse=True):
            obj = self.objects[key]
            if is_selected(obj, stream.namespace, stream.selectors):
                stream.send(line_of("ADDED", shown(obj, metadata_only=stream.metadata_only)))
        stream.after = self.revision
        if self.end_bookmark_seconds == 0:
            self._send_bookmark(stream, is_end=True)
        elif self.end_bookmark_seconds is not None:
            stream.after_seconds(self.end_bookmark_seconds, lambda: self._send_bookmark(stream, is_end=True))

    def _send_bookmark(self, stream: ModelStream, *, is_end: bool = False) -> None:
        # A watch from a revision that the server has yet to reach hears nothing until then.
        if stream.after <= self.revision:
            kind = {"apiVersion": self.resource.api_version, "kind": self.resource.kind}
            stream.send(bookmark_line(kind, self.revision, is_end=is_end))

    def _note(self, verb: str, **options: Any) -> None:
        self.asked.append(Asked(verb, asyncio.get_running_loop().time(), **options))

    def _check(self, verb: str) -> None:
        if self.refusals[verb]:
            raise self.refusals[verb].popleft()
        if self.outage is not None:
            raise self.outage


def _tell(stream: ModelStream, change: Change) -> None:
    if change.revision > stream.after:
        line = change_line(change, stream.namespace, stream.selectors, metadata_only=stream.metadata_only)
        if line is not None:
            stream.send(line)
