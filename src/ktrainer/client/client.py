"""The verbs of the Kubernetes API, as bytes in and bytes out.

What is in the objects is not looked at. Which verbs may be sent twice is decided here, all else in `sender`.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import orjson

from ktrainer.client.patchtype import PatchType
from ktrainer.client.retry import RETRY_AFTER_MAX_SECONDS
from ktrainer.client.selectors import EVERYTHING
from ktrainer.client.sender import Sender
from ktrainer.client.servertime import ServerTime
from ktrainer.client.transport.transport import Request
from ktrainer.client.watch import lines_of
from ktrainer.kube.identity import GroupKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from random import Random

    from ktrainer.aio.clock import Clock
    from ktrainer.client.metrics import ClientMetrics
    from ktrainer.client.selectors import Selectors
    from ktrainer.client.throttle import Throttle
    from ktrainer.client.transport.transport import Response, Transport
    from ktrainer.kube.identity import ObjectKey, Resource

READ_SECONDS = 60.0
"""The time limit of a get or list; servers give up after as long."""

WRITE_SECONDS = 30.0
"""The time limit of a write; servers give up after 34 s."""

FENCED_WRITE_SECONDS = 5.0
"""The time limit of a write behind a fence: what a lease lasts beyond its renewal deadline, by default."""

WATCH_GRACE_SECONDS = 30.0
"""How much longer than it was asked to a server may keep a watch open before we end it."""

_JSON: Final = "application/json"
_READ: Final = {"Accept": _JSON}
_WRITE: Final = {"Accept": _JSON, "Content-Type": _JSON}
_PATCH: Final = {kind: {"Accept": _JSON, "Content-Type": kind.value} for kind in PatchType}
_METADATA: Final = {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}
_METADATA_WATCH: Final = {"Accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
_NO_KIND: Final = GroupKind("", "")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """The time limits of single tries, in seconds."""

    read_seconds: float = READ_SECONDS
    write_seconds: float = WRITE_SECONDS


class Client:
    """The API of one server. Verbs raise `ktrainer.kube.errors.ApiError` and `ktrainer.client.errors.TransportError`.

    Cancelling a call closes its connection; the server may carry the request out nevertheless.
    """

    def __init__(  # noqa: PLR0913 - a composition of parts, each of which tests replace
        self,
        transport: Transport,
        *,
        throttle: Throttle,
        metrics: ClientMetrics,
        fence: Callable[[], None] | None,
        clock: Clock,
        random: Random,
        watch_transport: Transport | None = None,
        server_time: ServerTime | None = None,
        timeouts: Timeouts | None = None,
        max_wait_seconds: float = RETRY_AFTER_MAX_SECONDS,
    ) -> None:
        """`max_wait_seconds` is how long a request waits at most, where the server asks for it, to be sent again."""
        self._transport = transport
        self._watch_transport = watch_transport or transport
        """Watches hold their connections for minutes, so they have a pool of their own where it matters."""
        self._fence = fence
        """Called right before each write leaves; raises to refuse it."""
        self.server_time = server_time or ServerTime(clock)
        """The server's clock, learned from its answers."""
        self._timeouts = timeouts or Timeouts(write_seconds=FENCED_WRITE_SECONDS if fence else WRITE_SECONDS)
        self._sender = Sender(
            throttle=throttle,
            metrics=metrics,
            server_time=self.server_time,
            clock=clock,
            random=random,
            max_wait_seconds=max_wait_seconds,
        )

    async def get(self, resource: Resource, key: ObjectKey, *, subresource: str = "") -> bytes:
        """Return one object, as it is now."""
        return await self._read(resource, resource.path(key.namespace, key.name, subresource), _READ)

    async def list_page(  # noqa: PLR0913 - the options of the API
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
        """Return one page of a collection; an empty `resource_version` reads what is surely current.

        A limit of 0 asks for everything at once. Raises Expired for a continue token that is too old.
        """
        query = _query(
            ("labelSelector", selectors.labels),
            ("fieldSelector", selectors.fields),
            ("limit", str(limit) if limit else ""),
            ("continue", continue_token),
            ("resourceVersion", resource_version),
        )
        return await self._read(resource, resource.path(namespace) + query, _METADATA if metadata_only else _READ)

    @asynccontextmanager
    async def watch(  # noqa: PLR0913 - the options of the API
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
        """Open a watch with bookmarks; the iterator gives one event a line, ERROR events too, and ends with the watch.

        Raises ApiError when the server refuses to open it, and TransportError when the stream breaks, also when nothing
        comes for `idle_seconds` or it goes on well beyond `timeout_seconds`. Leaving the context closes the connection.
        """
        query = _query(
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(timeout_seconds)),
            ("sendInitialEvents", "true" if initial_events else ""),
            ("resourceVersionMatch", "NotOlderThan" if initial_events else ""),
            ("labelSelector", selectors.labels),
            ("fieldSelector", selectors.fields),
        )
        request = Request(
            "GET",
            resource.path(namespace) + query,
            _METADATA_WATCH if metadata_only else _READ,
            None,
            timeout_seconds + WATCH_GRACE_SECONDS,
        )
        async with AsyncExitStack() as stack:
            stream = await self._sender.open(self._watch_transport, request, idle_seconds, stack)
            yield await stack.enter_async_context(aclosing(lines_of(stream)))

    async def create(
        self, resource: Resource, namespace: str, body: bytes, *, field_manager: str = "", dry_run: bool = False
    ) -> bytes:
        """Create an object and return it as stored; raises AlreadyExists.

        Never repeated by itself: after a TransportError the object may or may not exist.
        """
        query = _query(("fieldManager", field_manager), ("dryRun", "All" if dry_run else ""))
        return await self._write("POST", resource, resource.path(namespace) + query, _WRITE, body)

    async def update(
        self, resource: Resource, key: ObjectKey, body: bytes, *, subresource: str = "", field_manager: str = ""
    ) -> bytes:
        """Replace an object and return it as stored; raises Conflict unless its resourceVersion is the current one."""
        path = resource.path(key.namespace, key.name, subresource) + _query(("fieldManager", field_manager))
        return await self._write("PUT", resource, path, _WRITE, body)

    async def patch(  # noqa: PLR0913 - the options of the API
        self,
        resource: Resource,
        key: ObjectKey,
        body: bytes,
        patch_type: PatchType,
        *,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
    ) -> bytes:
        """Change an object and return it as stored."""
        query = _query(("fieldManager", field_manager), ("force", "true" if force else ""))
        path = resource.path(key.namespace, key.name, subresource) + query
        # Applying twice is applying once. Other patches may build on a state that the first try has changed.
        return await self._write(
            "PATCH", resource, path, _PATCH[patch_type], body, repeatable=patch_type is PatchType.APPLY
        )

    async def apply(  # noqa: PLR0913 - the options of the API
        self,
        resource: Resource,
        key: ObjectKey,
        body: bytes,
        *,
        field_manager: str,
        force: bool = True,
        subresource: str = "",
    ) -> bytes:
        """Make an object have these fields, and return it as stored; raises Conflict for foreign ones without force."""
        return await self.patch(
            resource, key, body, PatchType.APPLY, subresource=subresource, field_manager=field_manager, force=force
        )

    async def delete(
        self,
        resource: Resource,
        key: ObjectKey,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
    ) -> None:
        """Ask for the deletion of an object; raises Conflict where the uid or resourceVersion is another."""
        preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        options: dict[str, object] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        if preconditions:
            options["preconditions"] = preconditions
        path = resource.path(key.namespace, key.name)
        # Without a precondition a second try could hit an object of the same name that has come since.
        await self._write("DELETE", resource, path, _WRITE, orjson.dumps(options), repeatable=bool(preconditions))

    async def request(
        self, method: str, path: str, *, body: bytes | None = None, content_type: str = _JSON
    ) -> Response:
        """Send anything else, such as discovery or a review; the fence is not asked, so it must store nothing."""
        headers = _READ if body is None else {"Accept": _JSON, "Content-Type": content_type}
        request = Request(method, path, headers, body, self._timeouts.read_seconds)
        return await self._sender.send(self._transport, request, _NO_KIND, fence=None, repeatable=method == "GET")

    async def _read(self, resource: Resource, path: str, headers: Mapping[str, str]) -> bytes:
        request = Request("GET", path, headers, None, self._timeouts.read_seconds)
        response = await self._sender.send(self._transport, request, resource.group_kind, fence=None, repeatable=True)
        return response.body

    async def _write(  # noqa: PLR0913 - the parts of a request
        self,
        method: str,
        resource: Resource,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        repeatable: bool = False,
    ) -> bytes:
        request = Request(method, path, headers, body, self._timeouts.write_seconds)
        response = await self._sender.send(
            self._transport, request, resource.group_kind, fence=self._fence, repeatable=repeatable
        )
        return response.body


def _query(*parameters: tuple[str, str]) -> str:
    """The query of a URL, of those parameters that are not empty."""
    parts = [f"{name}={_quoted(value)}" for name, value in parameters if value]
    return "?" + "&".join(parts) if parts else ""


def _quoted(value: str) -> str:
    return value if value.isalnum() and value.isascii() else quote(value, safe="")
