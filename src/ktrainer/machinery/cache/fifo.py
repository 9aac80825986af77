"""The queue between the reflector, which must never wait, and the processor, which may be slow.

A server drops watchers that do not read, so reading goes on whatever the handlers do. When too much piles up, it is
thrown away: listing everything again is cheaper than keeping it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeAlias

import msgspec

from ktrainer.machinery.cache.delta import Snapshot
from ktrainer.machinery.cache.objects import T

if TYPE_CHECKING:
    from ktrainer.machinery.cache.delta import Absent, Bookmark, Put, Removal, Resync
    from ktrainer.machinery.cache.distribution import Registration

    Change: TypeAlias = Put[T] | Removal[T] | Bookmark
    Note: TypeAlias = "Resync | Absent | Join[T]"
    Entry: TypeAlias = Change[T] | Snapshot[T] | Note[T]

LIMIT = 50_000
"""Changes that may wait."""


class Overflow(Exception):
    """Too many changes were waiting, and all of them were dropped: everything has to be listed again."""


class Join(msgspec.Struct, Generic[T], frozen=True):
    """A handler that wants to be told from now on. Never dropped."""

    registration: Registration[T]


class Fifo(Generic[T]):
    """One reader. All but `get` are plain functions and therefore atomic."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._entries: deque[Entry[T]] = deque()
        self._has_entries = asyncio.Event()
        self._dropped_mark: int | None = None
        """The mark of a quorum read whose snapshot was dropped, and that no snapshot has taken over since."""

    def __len__(self) -> int:
        return len(self._entries)

    def push(self, change: Change[T]) -> None:
        """Add a change; raises Overflow, and drops everything, when too many wait."""
        if len(self._entries) >= self._limit:
            self._drop()
            raise Overflow(f"{self._limit} changes were waiting")
        self._add(change)

    def replace(self, snapshot: Snapshot[T]) -> None:
        """Add a snapshot; what waited before it is dropped, since it says it all.

        It has seen what dropped snapshots had seen, since none is older than one before it: if its own is no quorum
        read, it gets the mark of theirs. Whoever waits for a write that never comes would wait for ever without it.
        """
        self._drop()
        if snapshot.mark is None and self._dropped_mark is not None:
            snapshot = msgspec.structs.replace(snapshot, mark=self._dropped_mark)
        self._dropped_mark = None
        self._add(snapshot)

    def note(self, note: Note[T]) -> None:
        """Add something that is no news from the server, whatever waits."""
        self._add(note)

    async def get(self) -> Entry[T]:
        """Wait for the next entry and take it; does not give way to other tasks when there is one."""
        while not self._entries:
            self._has_entries.clear()
            await self._has_entries.wait()
        return self._entries.popleft()

    def _add(self, entry: Entry[T]) -> None:
        self._entries.append(entry)
        self._has_entries.set()

    def _drop(self) -> None:
        marks = [entry.mark for entry in self._entries if isinstance(entry, Snapshot) and entry.mark is not None]
        # Marks only grow, so the latest is the highest.
        self._dropped_mark = marks[-1] if marks else self._dropped_mark
        self._entries = deque(entry for entry in self._entries if isinstance(entry, Join))
