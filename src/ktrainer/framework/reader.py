"""How plugins and runtimes look at the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject


class Reader(Protocol):
    """Reads objects, from a cache where there is one."""

    async def fetch(self, resource: Resource, namespace: str, name: str, *, live: bool = False) -> JsonObject | None:
        """The object, fresh and the caller's to change; none where there is none.

        `live` goes past the caches. Raises whatever the client raises when the API server cannot be asked.
        """
        ...


async def fetch_surely(reader: Reader, resource: Resource, namespace: str, name: str) -> JsonObject | None:
    """Fetch an object that must not be missed: what no cache has, the API server is asked for."""
    cached = await reader.fetch(resource, namespace, name)
    return await reader.fetch(resource, namespace, name, live=True) if cached is None else cached
