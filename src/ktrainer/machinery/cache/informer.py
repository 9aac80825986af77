"""A view of the cluster that is kept up to date in memory, and tells whoever wants to know what changes.

Three tasks: the reflector reads and never waits for anybody; the processor puts what was read into the store and tells
the handlers; and every ten hours all is shown to the handlers again, as a guard against our own bugs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic

from ktrainer.aio.cancellation import uncancelled
from ktrainer.kube.resourceversion import is_well_formed
from ktrainer.machinery.cache.delta import Resync
from ktrainer.machinery.cache.distribution import Distributor, Registration
from ktrainer.machinery.cache.fifo import Fifo, Join
from ktrainer.machinery.cache.instruments import Instruments
from ktrainer.machinery.cache.objects import T
from ktrainer.machinery.cache.processor import Processor
from ktrainer.machinery.cache.reader import NotStarted, NotSynced, Reader
from ktrainer.machinery.cache.reflector.reflector import Reflector
from ktrainer.machinery.cache.source import Source
from ktrainer.machinery.cache.store import Store
from ktrainer.machinery.cache.vitals import Vitals

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from ktrainer.machinery.cache.distribution import Handler
    from ktrainer.machinery.cache.instruments import Tools
    from ktrainer.machinery.cache.source import ListerWatcher, View

RESYNC_SECONDS = 36_000.0
"""How often everything is shown to the handlers again, from memory."""

RESYNC_JITTER = 0.1
"""A resync comes up to this share of its time too early or too late, so that informers do not do it together."""


class Informer(Generic[T]):
    """The objects of one view."""

    def __init__(
        self,
        view: View[T],
        lister_watcher: ListerWatcher,
        tools: Tools,
        *,
        mark: Callable[[], int],
        relisted: Callable[[], None],
    ) -> None:
        """`mark` is asked before every quorum read, and `relisted` called when `relist_mark` has changed."""
        self.view = view
        self.store: Store[T] = Store(view.indexers)
        """For handlers, and for those who know that it has synced; others use `reader`."""
        self.reader = Reader(self.store, self._check_readable)
        self.relist_mark: int | None = None
        """The mark that was taken before the latest quorum read of which the result is in the store."""
        self._relisted = relisted
        self._fifo: Fifo[T] = Fifo()
        record = tools.metrics.record(view.name, self)
        self._vitals = Vitals(view.name, record, tools.clock)
        self._random: Random = tools.random
        instruments = Instruments(view.name, tools.clock, tools.random, record, self._vitals)
        self._reflector = Reflector(Source(view, lister_watcher), self._fifo, instruments, mark)
        self._distributor: Distributor[T] = Distributor(view.name, record)
        self._processor = Processor(self._fifo, self.store, self._distributor, self._note_relist)
        self._has_started = False

    def add_handler(self, handler: Handler[T]) -> Registration[T]:
        """Tell a handler of everything that is there, as adds, and then of every change; may be called at any time."""
        registration = Registration(handler)
        self._fifo.note(Join(registration))
        return registration

    def on_arrival(self, function: Callable[[], None]) -> None:
        """Call a function whenever the server knows an optional kind that it did not know before.

        What there is of the kind is in the store by then, and was told to the handlers. Quick, like a handler.
        """
        self._distributor.on_arrival(function)

    @property
    def has_synced(self) -> bool:
        """Whether the first state is in the store and was told to the handlers; true of an absent optional kind."""
        return self._processor.has_synced

    @property
    def is_telling(self) -> bool:
        """Whether the handlers do not know yet all that the store has since everything was listed anew."""
        return self._processor.is_telling

    async def wait_synced(self) -> None:
        """Wait until `has_synced`."""
        await self._processor.wait_synced()

    async def run(self) -> None:
        """Work until cancelled. Whatever the server or a handler does, this does not end. Raises if run twice."""
        if self._has_started:
            raise RuntimeError(f"the informer of {self.view.name} was started before")
        self._has_started = True
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(uncancelled(self._reflector.run), name=f"reflector {self.view.name}")
            tasks.create_task(uncancelled(self._processor.run), name=f"processor {self.view.name}")
            tasks.create_task(uncancelled(self._resync), name=f"resync {self.view.name}")

    @property
    def last_error(self) -> str | None:
        """What went wrong last when listing or watching; None while all is well."""
        return self._vitals.last_error

    @property
    def last_activity_at(self) -> float:
        """When the server was last heard of, in monotonic seconds; at first, when the informer was made."""
        return self._vitals.last_activity_at

    @property
    def is_absent(self) -> bool:
        """Whether the server does not know the kind, as far as we know."""
        return self._vitals.is_absent

    @property
    def absent_at(self) -> float | None:
        """When the server last said that it does not know the kind, in monotonic seconds."""
        return self._vitals.absent_at

    @property
    def absent_since(self) -> float | None:
        """Since when the server has not known the kind, in monotonic seconds; None where it does, as far as we know."""
        return self._vitals.absent_since

    @property
    def is_unreachable(self) -> bool:
        """Whether the server cannot be reached, as far as we know."""
        return self._vitals.is_unreachable

    @property
    def unreachable_at(self) -> float | None:
        """When the server last could not be reached, in monotonic seconds."""
        return self._vitals.unreachable_at

    @property
    def store_objects(self) -> int:
        """How many objects are in the store."""
        return len(self.store)

    @property
    def store_version(self) -> int:
        """The store's resourceVersion as a number, 0 where it is none."""
        version = self.store.resource_version
        return int(version) if is_well_formed(version) else 0

    @property
    def fifo_depth(self) -> int:
        """How many changes wait to be handled."""
        return len(self._fifo)

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(RESYNC_SECONDS * (1 - RESYNC_JITTER + 2 * RESYNC_JITTER * self._random.random()))
            self._fifo.note(Resync())

    def _note_relist(self, mark: int) -> None:
        self.relist_mark = mark
        self._relisted()

    def _check_readable(self) -> None:
        if not self._has_started:
            raise NotStarted(f"the cache of {self.view.name} is not started")
        if not self.has_synced:
            trouble = f": {self.last_error}" if self.last_error else ""
            raise NotSynced(f"the cache of {self.view.name} is not complete yet{trouble}")
