"""Informers of the model API server, and a handler that checks what it is told."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from ktrainer.machinery.cache.cache import Cache
from ktrainer.machinery.cache.metrics import CacheMetrics
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.cache.written import WrittenVersions
from support.modelserver import WIDGETS, ModelServer
from support.virtualtime import VirtualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from structlog.typing import EventDict

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.informer import Informer
    from ktrainer.machinery.cache.store import Store

WIDGET_VIEW = View(WIDGETS, CachedObject)


@dataclass
class Recorder:
    """A handler that keeps what it is told, and fails when that makes no sense."""

    told: list[tuple[str, str]] = field(default_factory=list)
    """What happened, and to whom."""
    objects: dict[ObjectKey, CachedObject] = field(default_factory=dict)
    """What must be there, by all that was told."""
    problems: list[str] = field(default_factory=list)

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        self.told.append(("initial" if is_initial else "add", str(obj.key)))
        self._check(obj.key not in self.objects, f"{obj.key} is added twice")
        self.objects[obj.key] = obj

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        is_same = old.metadata.resource_version == new.metadata.resource_version
        self.told.append(("sync" if is_same else "update", str(new.key)))
        self._check(self.objects.get(new.key) is old, f"{new.key} is updated from what it was not")
        self._check(old.metadata.uid == new.metadata.uid, f"{new.key} becomes another object by an update")
        self.objects[new.key] = new

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        self.told.append(("tombstone" if is_final_state_unknown else "delete", str(obj.key)))
        known = self.objects.pop(obj.key, None)
        self._check(known is not None and known.metadata.uid == obj.metadata.uid, f"{obj.key} was not there")

    def take(self) -> list[tuple[str, str]]:
        """Return what was told since the last call."""
        told, self.told = self.told, []
        return told

    def _check(self, is_fine: bool, problem: str) -> None:
        if not is_fine:
            self.problems.append(problem)


def build_cache(server: ModelServer, *, registry: CollectorRegistry | None = None, seed: int = 0) -> Cache:
    """A cache of the server on the running loop."""
    clock, registry = VirtualClock(), registry or CollectorRegistry()
    return Cache(
        server,
        clock=clock,
        random=Random(seed),
        metrics=CacheMetrics(registry, clock),
        written=WrittenVersions(registry, ()),
    )


@contextlib.asynccontextmanager
async def running(cache: Cache) -> AsyncIterator[None]:
    """Run a cache; it must not end by itself."""
    task = asyncio.create_task(cache.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@contextlib.asynccontextmanager
async def informing(
    server: ModelServer, view: View[CachedObject] = WIDGET_VIEW, *, registry: CollectorRegistry | None = None
) -> AsyncIterator[tuple[Informer[CachedObject], Recorder]]:
    """Run an informer of the server with a handler that sees no contradiction in what it is told."""
    cache = build_cache(server, registry=registry)
    informer, recorder = cache.register(view), Recorder()
    informer.add_handler(recorder)
    async with running(cache):
        yield informer, recorder
        assert recorder.problems == []


def is_synced(informer: Informer[Any]) -> bool:
    """Whether an informer has synced, asked in a way from which the type checker draws no conclusions for later."""
    return informer.has_synced


def is_absent(informer: Informer[Any]) -> bool:
    """Whether an informer's kind is absent, in the same way."""
    return informer.is_absent


def warnings_of(logs: list[EventDict]) -> list[str]:
    """The messages of captured logs that are warnings."""
    return [entry["event"] for entry in logs if entry["log_level"] == "warning"]


def contents_of(store: Store[Any]) -> dict[ObjectKey, tuple[str, str]]:
    """What a store holds, as uid and version by key."""
    return {obj.key: (obj.metadata.uid, obj.metadata.resource_version) for obj in store.list()}


def contents_of_server(server: ModelServer) -> dict[ObjectKey, tuple[str, str]]:
    """What the server holds, in the same form."""
    return {key: (obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]) for key, obj in server.objects.items()}
