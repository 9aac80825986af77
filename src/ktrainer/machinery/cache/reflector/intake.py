"""Where a reflector stands: what it has handed on, and the state that it is just collecting.

While a stream brings the initial state, nothing is handed on and the version stays: those events come in no order, and
if the stream ends too early all of it is dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Generic

import structlog

from ktrainer.machinery.cache.delta import Bookmark, Put, Removal, Skip, Snapshot
from ktrainer.machinery.cache.objects import T

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.delta import Event
    from ktrainer.machinery.cache.fifo import Fifo
    from ktrainer.machinery.cache.instruments import Instruments

_log = structlog.get_logger(__name__)

REMINDER_SECONDS = 10.0
"""How often the log tells of an initial state that is not complete yet."""


class Intake(Generic[T]):
    """Takes in events and states. Plain functions, hence atomic."""

    def __init__(self, fifo: Fifo[T], instruments: Instruments) -> None:
        self._fifo = fifo
        self._instruments = instruments
        self.version = ""
        """The version up to which everything was handed on; empty when there is none that the server knows."""
        self.is_filling = False
        """Whether a state is wanted, so that events are collected and not handed on."""
        self._objects: dict[ObjectKey, T] = {}
        self._unreadable: set[ObjectKey] = set()
        self._mark: int | None = None
        self._began_at = 0.0
        self._reminder: asyncio.TimerHandle | None = None

    def begin(self, mark: int | None) -> None:
        """Start from scratch; `mark` becomes the mark of the snapshot that is about to be collected."""
        self.is_filling = True
        self._objects, self._unreadable, self._mark = {}, set(), mark
        self._began_at = self._instruments.clock.monotonic()

    def fill(self, snapshot: Snapshot[T]) -> None:
        """Hand on a complete state; what comes from now on are changes to it."""
        record = self._instruments.record
        record.list_seconds.observe(self._instruments.clock.monotonic() - self._began_at)
        record.list_items.observe(len(snapshot.objects))
        self._fifo.replace(snapshot)
        self.version = snapshot.resource_version
        self.is_filling = False
        self._objects, self._unreadable = {}, set()
        self._instruments.vitals.works()

    def take(self, event: Event[T]) -> bool:
        """Take in an event; return whether it is a complete state or a change. Raises Overflow."""
        if self.is_filling:
            return self._collect(event)
        if isinstance(event, Skip):
            return False
        self._fifo.push(event)
        self.version = _version_of(event) or self.version
        return not isinstance(event, Bookmark)

    @contextlib.contextmanager
    def reminders(self) -> Iterator[None]:
        """Tell the log every now and then that the state is not complete, for as long as this is entered."""
        self._remind_later()
        try:
            yield
        finally:
            if self._reminder is not None:
                self._reminder.cancel()

    def _remind_later(self) -> None:
        self._reminder = asyncio.get_running_loop().call_later(REMINDER_SECONDS, self._remind)

    def _remind(self) -> None:
        if self.is_filling:
            _log.warning("the initial state is not complete yet", informer=self._instruments.name)
            self._remind_later()

    def _collect(self, event: Event[T]) -> bool:
        match event:
            case Put(obj):
                self._objects[obj.key] = obj
            case Removal(key):
                self._objects.pop(key, None)
                self._unreadable.discard(key)
            case Skip(key):
                self._unreadable |= set() if key is None else {key}
            case Bookmark(resource_version, True):
                self.fill(Snapshot(self._objects, self._unreadable, resource_version, self._mark))
                return True
        return False


def _version_of(event: Put[T] | Removal[T] | Bookmark) -> str:
    match event:
        case Put(obj):
            return obj.metadata.resource_version
        case Removal(_, final):
            return "" if final is None else final.metadata.resource_version
        case Bookmark(resource_version):
            return resource_version
