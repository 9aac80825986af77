"""Which kinds an API server serves: asked when somebody wants to know, and remembered.

Every group and version is asked for by itself, so that a broken aggregated API hurts only those who want its kinds.
Kinds come and go with their definitions: what was not there is looked for again, though not more often than every ten
seconds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import msgspec

from ktrainer.kube.errors import NotFound
from ktrainer.kube.identity import Resource

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.client.transport.transport import Response
    from ktrainer.kube.identity import GroupVersionKind

REFRESH_SECONDS = 10.0
"""The age up to which an answer is not asked for again."""


class Requester(Protocol):
    """Sends what discovery asks."""

    async def request(self, method: str, path: str) -> Response:
        """Send a request; raises ApiError and TransportError."""
        ...


class NoMatch(Exception):
    """The server does not serve a kind, or not yet."""


class _ApiResource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False


class _ApiResourceList(msgspec.Struct):
    resources: list[_ApiResource] = []


class _Version:
    """What the server said about one version of a group."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        """Held while the server is asked, so that those who want to know the same ask once."""
        self.resources: list[_ApiResource] = []
        """Empty where the version is not served."""
        self.asked_at = float("-inf")
        """When the server was last asked with success, on the monotonic clock."""


class Discovery:
    """The kinds of one API server. Its methods raise ApiError and TransportError when the server cannot be asked."""

    def __init__(self, requester: Requester, clock: Clock) -> None:
        self._requester = requester
        self._clock = clock
        self._versions: dict[str, _Version] = {}
        """By path; as many as somebody wants to know about."""

    async def exists(self, resource: Resource) -> bool:
        """Whether the server serves a resource, as of ten seconds ago at most."""
        served = await self._ask(resource.group, resource.version, REFRESH_SECONDS)
        return any(each.name == resource.plural for each in served)

    async def find(self, kind: GroupVersionKind) -> Resource:
        """Return the resource of a kind; raises NoMatch where there has been none for ten seconds at most."""
        for max_age in (float("inf"), REFRESH_SECONDS):
            for each in await self._ask(kind.group, kind.version, max_age):
                # Subresources are listed, too, with the kinds that they take.
                if each.kind == kind.kind and "/" not in each.name:
                    return Resource(kind.group, kind.version, kind.kind, each.name, each.namespaced)
        raise NoMatch(f"the API server does not serve {kind}")

    async def _ask(self, group: str, name: str, max_age: float) -> list[_ApiResource]:
        """Return what is served in a version, from memory where that is young enough."""
        path = f"/apis/{group}/{name}" if group else f"/api/{name}"
        version = self._versions.setdefault(path, _Version())
        async with version.lock:
            now = self._clock.monotonic()
            # Never asked is older than anything, even than for ever.
            if now - version.asked_at >= max_age:
                try:
                    version.resources = _resources_of((await self._requester.request("GET", path)).body)
                except NotFound:
                    version.resources = []
                version.asked_at = now
            return version.resources


def _resources_of(body: bytes) -> list[_ApiResource]:
    try:
        return msgspec.json.decode(body, type=_ApiResourceList).resources
    except msgspec.MsgspecError:
        # Such as the page of a proxy: it says nothing, and will be asked for again.
        return []
