"""All informers of a program: registered before the start, started together, read only when they are complete."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, cast

from ktrainer.kube.resourceversion import Order, compare
from ktrainer.machinery.cache.informer import Informer
from ktrainer.machinery.cache.instruments import Tools
from ktrainer.machinery.cache.reader import CacheError, NotCached

if TYPE_CHECKING:
    from random import Random

    from ktrainer.aio.clock import Clock
    from ktrainer.kube.identity import Resource
    from ktrainer.machinery.cache.metrics import CacheMetrics
    from ktrainer.machinery.cache.objects import T
    from ktrainer.machinery.cache.reader import Reader
    from ktrainer.machinery.cache.source import ListerWatcher, View
    from ktrainer.machinery.cache.written import WrittenVersions

SYNC_SECONDS = 120.0
"""How long the first state of a kind that the server knows may take."""

ABSENT_GRACE_SECONDS = 60.0
"""A kind that the server does not know for so long is gone; one that is starting may not know it yet."""


class SyncTimeout(CacheError):
    """The first state did not become complete in time; the message names the informers and what keeps them."""


class Cache:
    """The registry of informers, one for each view however many ask for it."""

    def __init__(
        self,
        lister_watcher: ListerWatcher,
        *,
        clock: Clock,
        random: Random,
        metrics: CacheMetrics,
        written: WrittenVersions,
    ) -> None:
        """`written` is told when everything of a resource was listed anew."""
        self._lister_watcher = lister_watcher
        self._clock = clock
        self._tools = Tools(clock, random, metrics)
        self._written = written
        self._informers: dict[View[Any], Informer[Any]] = {}
        self._has_started = False

    def register(self, view: View[T]) -> Informer[T]:
        """Return the informer of a view, a new one or the one that it has already.

        Raises RuntimeError after the start, and ValueError when others want to have the same objects in another manner.
        """
        if self._has_started:
            raise RuntimeError(f"{view.name} cannot be registered: the cache has started")
        if view not in self._informers:
            self._informers[view] = self._build(view)
        informer = cast("Informer[T]", self._informers[view])
        if _manner_of(informer.view) != _manner_of(view):
            raise ValueError(f"{view.name} is registered already, but in another manner")
        for name, function in view.indexers.items():
            informer.store.add_index(name, function)
        return informer

    def reader(self, view: View[T]) -> Reader[T]:
        """Return the way to read a view; raises NotCached when it was not registered."""
        try:
            return cast("Informer[T]", self._informers[view]).reader
        except KeyError:
            raise NotCached(f"no informer is registered for {view.name}") from None

    async def run(self) -> None:
        """Run all informers until cancelled; one that dies ends the others and raises."""
        self._has_started = True
        async with asyncio.TaskGroup() as tasks:
            for informer in self._informers.values():
                tasks.create_task(informer.run(), name=f"informer {informer.view.name}")
            await asyncio.Event().wait()

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """All informers, in the order of their registration."""
        return tuple(self._informers.values())

    def unsynced(self) -> dict[str, str]:
        """Return the names of the informers that are not complete yet, with what keeps each of them."""
        return {each.view.name: _trouble_of(each) for each in self._informers.values() if not each.has_synced}

    async def wait_synced(self, timeout_seconds: float = SYNC_SECONDS) -> None:
        """Wait until all informers are complete; raises SyncTimeout when one of them takes too long.

        A server that cannot be reached is waited for without limit, and so is a kind that it does not know: the time
        begins when either was last met. A restart would bring neither.
        """
        began_at = self._clock.monotonic()
        while waiting := [informer for informer in self._informers.values() if not informer.has_synced]:
            latest_at = min(max(began_at, self._excused_at(informer)) for informer in waiting) + timeout_seconds
            remaining = latest_at - self._clock.monotonic()
            if remaining <= 0:
                troubles = "; ".join(f"{name}: {trouble}" for name, trouble in self.unsynced().items())
                raise SyncTimeout(f"not complete after {timeout_seconds:g} s: {troubles}")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(remaining):
                    await waiting[0].wait_synced()

    def resource_version_of(self, resource: Resource) -> str:
        """Return the version up to which all caches of a resource are complete; empty where that cannot be told.

        Those of single objects do not count: they hear of no others, and would hold everybody up until a bookmark. That
        of a kind that is gone gets no further, and what was written went with the kind.
        """
        counting = [each for each in self._informers.values() if each.view.resource == resource]
        counting = [each for each in counting if not each.view.is_of_one]
        gone_since = self._clock.monotonic() - ABSENT_GRACE_SECONDS
        if any(each.absent_since is not None and each.absent_since < gone_since for each in counting):
            return ""
        versions = [each.store.resource_version for each in counting]
        oldest = versions[0] if versions else ""
        for version in versions[1:]:
            order = compare(version, oldest)
            if order is Order.UNKNOWN:
                return ""
            oldest = version if order is Order.OLDER else oldest
        return oldest

    def _excused_at(self, informer: Informer[Any]) -> float:
        """When there last was a reason why the informer could not become complete that is not its own."""
        if informer.is_unreachable:
            return self._clock.monotonic()
        return max(informer.absent_at or 0.0, informer.unreachable_at or 0.0)

    def _build(self, view: View[T]) -> Informer[T]:
        return Informer(
            view,
            self._lister_watcher,
            self._tools,
            mark=self._written.mark,
            relisted=lambda: self._note_relist(view.resource),
        )

    def _note_relist(self, resource: Resource) -> None:
        # What was written may be in any view of the resource, so all of them must have been read since.
        marks = [each.relist_mark for each in self._informers.values() if each.view.resource == resource]
        known = [mark for mark in marks if mark is not None]
        if len(known) == len(marks):
            self._written.relisted(resource, min(known))


def _trouble_of(informer: Informer[Any]) -> str:
    if informer.is_absent:
        return "the server does not know the kind; waiting for it"
    return informer.last_error or "the server is still answering"


def _manner_of(view: View[Any]) -> tuple[object, ...]:
    return (view.object_type, view.transform, view.is_optional)
