"""Carrying out, one after the other, what the reflector reports: the store first, then the handlers.

The only writer of the store. What takes long is done in slices; readers meanwhile see either the old state or the new.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic

from ktrainer.machinery.cache.delta import Absent, Bookmark, Put, Removal, Resync, Snapshot
from ktrainer.machinery.cache.fifo import Join
from ktrainer.machinery.cache.objects import T
from ktrainer.machinery.cache.reflector.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.distribution import Distributor, Registration
    from ktrainer.machinery.cache.fifo import Entry, Fifo
    from ktrainer.machinery.cache.store import Contents, Store


class Processor(Generic[T]):
    """The single consumer of one informer's queue."""

    def __init__(
        self, fifo: Fifo[T], store: Store[T], distributor: Distributor[T], relisted: Callable[[int], None]
    ) -> None:
        """`relisted` is called with the mark of a quorum read once that is in the store and the handlers know."""
        self._fifo = fifo
        self._store = store
        self._distributor = distributor
        self._relisted = relisted
        self.is_telling = False
        """Whether the store has a snapshot of which the handlers do not know all yet."""
        self._pace = Pace()
        self._is_filled = False
        """Whether there has been a snapshot; the objects of the first are initial."""
        self._is_absent = False
        """Whether the server did not know the kind when it was last heard of."""
        self._synced = asyncio.Event()

    @property
    def has_synced(self) -> bool:
        """Whether the first state is in the store and was told to the handlers, or there is none to wait for."""
        return self._synced.is_set()

    async def wait_synced(self) -> None:
        """Wait until `has_synced`."""
        await self._synced.wait()

    async def run(self) -> None:
        """Work until cancelled, which may leave the last entry half told."""
        while True:
            await self._process(await self._fifo.get())
            if self._pace.is_slice_over():
                await asyncio.sleep(0)

    async def _process(self, entry: Entry[T]) -> None:
        match entry:
            case Put(obj):
                self._tell(self._store.put(obj.key, obj), obj, is_initial=False)
            case Removal(key, final):
                self._remove(key, final)
            case Bookmark(resource_version):
                self._store.advance(resource_version)
            case Snapshot():
                await self._replace(entry)
            case Resync():
                await self._tell_all(self._store.list())
            case Join(registration):
                await self._join(registration)
            case Absent():
                self._is_absent = True
                self._mark_synced()

    def _remove(self, key: ObjectKey, final: T | None) -> None:
        if final is not None:
            self._store.advance(final.metadata.resource_version)
        old = self._store.remove(key)
        if old is None:
            return
        if final is not None and final.metadata.uid == old.metadata.uid:
            self._distributor.delete(final, is_final_state_unknown=False)
        else:
            self._distributor.delete(old, is_final_state_unknown=True)

    async def _replace(self, snapshot: Snapshot[T]) -> None:
        contents = await self._build(snapshot)
        former = self._store.replace(contents, snapshot.resource_version)
        self.is_telling = True
        for key, old in former.items():
            if key not in contents.objects:
                self._distributor.delete(old, is_final_state_unknown=True)
            if self._pace.is_slice_over():
                await asyncio.sleep(0)
        for key, obj in contents.objects.items():
            self._tell(former.get(key), obj, is_initial=not self._is_filled)
            if self._pace.is_slice_over():
                await asyncio.sleep(0)
        self.is_telling = False
        self._is_filled = True
        self._mark_synced()
        if self._is_absent:
            self._is_absent = False
            self._distributor.arrive()
        if snapshot.mark is not None:
            self._relisted(snapshot.mark)

    async def _build(self, snapshot: Snapshot[T]) -> Contents[T]:
        contents = self._store.prepare()
        for key, obj in snapshot.objects.items():
            contents.put(key, obj)
            if self._pace.is_slice_over():
                await asyncio.sleep(0)
        for key in snapshot.unreadable:
            known = self._store.get(key)
            if known is not None and key not in contents.objects:
                contents.put(key, known)
        return contents

    async def _tell_all(self, objects: tuple[T, ...]) -> None:
        for obj in objects:
            self._distributor.update(obj, obj)
            if self._pace.is_slice_over():
                await asyncio.sleep(0)

    async def _join(self, registration: Registration[T]) -> None:
        for obj in self._store.list():
            self._distributor.add_to(registration, obj)
            if self._pace.is_slice_over():
                await asyncio.sleep(0)
        self._distributor.join(registration)
        if self.has_synced:
            registration.mark_synced()

    def _tell(self, old: T | None, new: T, *, is_initial: bool) -> None:
        if old is None:
            self._distributor.add(new, is_initial=is_initial)
        elif old.metadata.uid == new.metadata.uid:
            self._distributor.update(old, new)
        else:
            self._distributor.delete(old, is_final_state_unknown=True)
            self._distributor.add(new, is_initial=False)

    def _mark_synced(self) -> None:
        self._synced.set()
        self._distributor.mark_synced()
