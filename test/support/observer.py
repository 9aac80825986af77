"""An informer on ConfigMaps under observation: what its handler was told, and what is in its store."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from ktrainer.aio.clock import SystemClock
from ktrainer.client.config.config import load_config
from ktrainer.client.connect import Connection, connect
from ktrainer.client.selectors import Selectors
from ktrainer.kube.identity import Resource
from ktrainer.machinery.cache.cache import Cache
from ktrainer.machinery.cache.metrics import CacheMetrics
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.cache.written import WrittenVersions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from ktrainer.client.config.config import ConnectionConfig
    from ktrainer.machinery.cache.informer import Informer

CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
OURS = Selectors(labels="fault-test")
"""Leaves out what Kubernetes puts into every namespace."""


class ConfigMap(CachedObject, gc=False, frozen=True, kw_only=True):
    """A ConfigMap with its data."""

    data: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


@dataclass
class Log:
    """What a handler was told, in order."""

    adds: list[str] = field(default_factory=list)
    """Names."""
    updates: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """Names and the data after the update."""
    deletes: list[tuple[str, str, bool]] = field(default_factory=list)
    """Names, uids, and whether the final state was not seen."""

    def on_add(self, obj: ConfigMap, is_initial: bool) -> None:
        """Note an add."""
        self.adds.append(obj.metadata.name)

    def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        """Note an update that brings something new."""
        if old.metadata.resource_version != new.metadata.resource_version:
            self.updates.append((new.metadata.name, new.data))

    def on_delete(self, obj: ConfigMap, is_final_state_unknown: bool) -> None:
        """Note a delete."""
        self.deletes.append((obj.metadata.name, obj.metadata.uid, is_final_state_unknown))


@dataclass
class Observer:
    """The informer and what came of it."""

    connection: Connection
    cache: Cache
    informers: list[Informer[ConfigMap]]
    registry: CollectorRegistry
    log: Log

    @property
    def informer(self) -> Informer[ConfigMap]:
        """The informer, where there is one."""
        return self.informers[0]

    def data_of(self, name: str) -> dict[str, str] | None:
        """The data of a ConfigMap in the store; None where it is not there."""
        found = [each for each in self.informer.store.list() if each.metadata.name == name]
        return found[0].data if found else None

    def state(self) -> dict[str, str]:
        """Name → resourceVersion of all that is in the store."""
        return {each.metadata.name: each.metadata.resource_version for each in self.informer.store.list()}


async def until(condition: Callable[[], bool], seconds: float = 60.0, interval: float = 0.01) -> float:
    """Wait for a condition and return how long it took; raises AssertionError when it does not come to hold."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not so after {seconds:g} s"
        await asyncio.sleep(interval)
    return time.monotonic() - began


@asynccontextmanager
async def observing(
    source: Path | ConnectionConfig, *namespaces: str, views: Iterable[View[ConfigMap]] = (), synced: bool = True
) -> AsyncIterator[Observer]:
    """Run an informer for each namespace and view (the same handler hears of all), and wait for their first state.

    `source` is a kubeconfig, or what would be in it.
    """
    clock, registry, log = SystemClock(), CollectorRegistry(), Log()
    # As programs do: before anything else runs on the loop.
    config = await asyncio.to_thread(load_config, source, None) if isinstance(source, Path) else source
    connection = connect(config, component="observer", clock=clock, registry=registry, qps=10_000, burst=10_000)
    cache = Cache(
        connection.cache_client,
        clock=clock,
        random=random.Random(),
        metrics=CacheMetrics(registry, clock),
        written=WrittenVersions(registry, [CONFIGMAPS]),
    )
    in_namespaces = [View(CONFIGMAPS, ConfigMap, namespace=each, selectors=OURS) for each in namespaces]
    informers = [cache.register(each) for each in (*in_namespaces, *views)]
    for informer in informers:
        informer.add_handler(log)
    running = asyncio.create_task(cache.run(), name="cache under observation")
    try:
        if synced:
            await cache.wait_synced()
        yield Observer(connection, cache, informers, registry, log)
    finally:
        running.cancel()
        await asyncio.wait({running})
        await connection.close()


def configmap(name: str, /, label: str = "", **data: str) -> dict[str, object]:
    """A ConfigMap that the observer sees, whatever value its label has."""
    metadata = {"name": name, "labels": {"fault-test": label}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
