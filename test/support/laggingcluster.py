"""A cluster whose caches may lag behind, as plugins and runtimes read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ktrainer.app.documents import Document, DocumentReader
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.framework.dependencies import Dependencies

if TYPE_CHECKING:
    from ktrainer.kube.identity import Resource

J = dict[str, Any]


class Cluster:
    """What `cached` has is seen unless the reader asks for the live state; by default that is all there is."""

    def __init__(self, *live: J, cached: list[J] | None = None) -> None:
        self._live = DocumentReader([Document("live", 1, each) for each in live], "team-a")
        seen = list(live) if cached is None else cached
        self._cached = DocumentReader([Document("cache", 1, each) for each in seen], "team-a")
        self.reads: list[str] = []
        self.live_reads: list[str] = []

    async def fetch(self, resource: Resource, namespace: str, name: str, *, live: bool = False) -> J | None:
        self.reads.append(f"{resource.kind}/{name}")
        if live:
            self.live_reads.append(f"{resource.kind}/{name}")
            return await self._live.fetch(resource, namespace, name)
        return await self._cached.fetch(resource, namespace, name)

    @property
    def dependencies(self) -> Dependencies:
        return Dependencies(reader=self, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys)
