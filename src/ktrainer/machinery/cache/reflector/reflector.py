"""Keeping up with a server: the state first, then every change, for ever.

    fill: a stream that begins with the state, or else a paged list ───▶ watch
      ▲                                                                  │ ▲
      │ back off                                    ended as watches do, │ │ go on from
      └──── expired, made no sense, ended at once, failed ◀──────────────┘ └─ where we are

Every way back to the beginning passes a delay that grows, so no fault of the server makes a storm of lists.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Generic, NamedTuple

import structlog

from ktrainer.aio.backoff import Backoff, BackoffPolicy
from ktrainer.client.errors import StreamIdle, TransportError
from ktrainer.kube.errors import ApiError, Expired
from ktrainer.kube.resourceversion import Order, compare
from ktrainer.machinery.cache.delta import Absent
from ktrainer.machinery.cache.objects import T
from ktrainer.machinery.cache.record import RelistReason
from ktrainer.machinery.cache.reflector.decoding import ObjectDecoder
from ktrainer.machinery.cache.reflector.endings import FillStep, Step, decide_fill, decide_next
from ktrainer.machinery.cache.reflector.events import LineDecoder, Undecodable
from ktrainer.machinery.cache.reflector.intake import Intake
from ktrainer.machinery.cache.reflector.listing import Lister
from ktrainer.machinery.cache.reflector.skips import Skips
from ktrainer.machinery.cache.reflector.watching import Watcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.machinery.cache.fifo import Fifo
    from ktrainer.machinery.cache.instruments import Instruments
    from ktrainer.machinery.cache.reflector.endings import WatchEnd
    from ktrainer.machinery.cache.source import Source

_log = structlog.get_logger(__name__)

IDLE_SECONDS = 80.0
"""A watch that is silent for so long is taken for dead: servers send a bookmark about every minute."""

SILENT_EXPIRIES = 2
"""So many watches in a row that were given up as dead, without a bookmark, show that the server sends none."""

PROBE_SECONDS = 5.0
"""How long to wait for the server's present version when a watch brought nothing."""

ABSENT_MIN_SECONDS, ABSENT_MAX_SECONDS = 8.0, 11.0
"""Between these, how long to wait before asking again for a kind that the server does not know."""

RETRY_AFTER_MAX_SECONDS = 60.0
"""The longest wait that a server may ask for."""


class _Setback(NamedTuple):
    """Why we have to begin again."""

    reason: RelistReason
    error: Exception | None


class Reflector(Generic[T]):
    """Puts the state and the changes of one view into a queue."""

    def __init__(self, source: Source[T], fifo: Fifo[T], instruments: Instruments, mark: Callable[[], int]) -> None:
        """`mark` is asked before every quorum read; the answer comes back with the snapshot."""
        self._view = source.view
        self._fifo = fifo
        self._name = instruments.name
        self._random = instruments.random
        self._record = instruments.record
        self._vitals = instruments.vitals
        self._mark = mark
        self._intake = Intake(fifo, instruments)
        objects = ObjectDecoder(source.view, Skips(instruments.name, instruments.record))
        self._lister = Lister(source, objects)
        lines = LineDecoder(source.view.object_type, objects, instruments.record)
        self._watcher = Watcher(source, lines, instruments, self._intake.take)
        self._relists = Backoff(BackoffPolicy(), instruments.clock, instruments.random)
        """Before beginning again; only time resets it, since a list that succeeds may still lead nowhere."""
        self._reconnects = Backoff(BackoffPolicy(), instruments.clock, instruments.random)
        """Before the next try of the same watch."""
        self._silent_expiries = 0
        """Watches in a row that were given up as dead and had brought no bookmark."""

    async def run(self) -> None:
        """Work until cancelled. Whatever the server does, this does not end."""
        while True:
            setback = await self._fill_and_watch()
            self._record.relists[setback.reason] += 1
            seconds = self._delay_after(setback)
            _log.debug("listing again", informer=self._name, reason=setback.reason.value, delay_seconds=seconds)
            await asyncio.sleep(seconds)

    async def _fill_and_watch(self) -> _Setback:
        try:
            end = await self._fill()
        except (ApiError, TransportError, Undecodable) as error:
            self._note_failure(error)
            return _Setback(_reason_of(error), error)
        while True:
            if end is not None:
                step = await self._judge(end)
                if isinstance(step, RelistReason):
                    return _Setback(step, end.error)
                if step is Step.BACK_OFF:
                    await self._back_off(end.error)
            end = await self._watcher.watch(self._intake.version, initial_events=False, idle_seconds=self._idle_seconds)

    async def _fill(self) -> WatchEnd | None:
        """Get hold of the whole state; return the end of the stream that brought it, None if it was a list."""
        while True:
            version = self._intake.version
            end = await self._stream_state(version)
            if not self._intake.is_filling:
                return end
            match decide_fill(end, version):
                case FillStep.LIST:
                    await self._list(end)
                    return None
                case FillStep.ANY_VERSION:
                    self._intake.version = ""
                case FillStep.BACK_OFF if end.error:
                    self._note_failure(end.error)
                    await self._back_off(end.error)
                case FillStep.GIVE_UP if end.error:
                    raise end.error

    async def _stream_state(self, version: str) -> WatchEnd:
        self._intake.begin(None if version else self._mark())
        with self._intake.reminders():
            return await self._watcher.watch(version, initial_events=True, idle_seconds=IDLE_SECONDS)

    async def _list(self, end: WatchEnd) -> None:
        _log.debug("no stream of the initial state; listing it", informer=self._name, error=repr(end.error))
        if isinstance(end.error, TransportError) and not end.is_open:
            # The server may be hung; it would take as long again until the list has shown that.
            self._note_failure(end.error)
        mark = self._mark()
        self._intake.begin(mark)
        self._intake.fill(await self._lister.fetch(self._vitals.heard, mark))

    async def _judge(self, end: WatchEnd) -> Step | RelistReason:
        """Decide how to go on after a watch, and note what its end says about the server."""
        if end.has_news:
            self._reconnects.reset()
        if end.bookmarks:
            self._silent_expiries = 0
        elif isinstance(end.error, StreamIdle):
            self._silent_expiries += 1
        step = decide_next(end)
        if step is Step.REWATCH and end.is_silent and await self._is_server_behind():
            step = RelistReason.ROLLED_BACK
        if step is RelistReason.ROLLED_BACK:
            _log.warning("the server went back to an older state", informer=self._name, version=self._intake.version)
            self._intake.version = ""
        elif step is not Step.REWATCH and end.error is not None:
            self._note_failure(end.error)
        return step

    async def _is_server_behind(self) -> bool:
        """Whether the server has not got as far as we have, as after it was restored: it would keep silent for long."""
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                version = await self._lister.fetch_version()
        except (ApiError, TransportError, Undecodable, TimeoutError):
            return False
        return compare(version, self._intake.version) is Order.OLDER

    def _note_failure(self, error: Exception) -> None:
        self._vitals.failed(error)
        if self._vitals.is_absent and self._view.is_optional:
            self._fifo.note(Absent())

    async def _back_off(self, error: Exception | None) -> None:
        await asyncio.sleep(max(self._reconnects.next_delay(), _wish_of(error)))

    def _delay_after(self, setback: _Setback) -> float:
        if self._vitals.is_absent:
            return self._random.uniform(ABSENT_MIN_SECONDS, ABSENT_MAX_SECONDS)
        return max(self._relists.next_delay(), _wish_of(setback.error))

    @property
    def _idle_seconds(self) -> float | None:
        # Without bookmarks silence says nothing, and only the end that every watch has is left.
        return None if self._silent_expiries >= SILENT_EXPIRIES else IDLE_SECONDS


def _reason_of(error: Exception) -> RelistReason:
    if isinstance(error, Expired):
        return RelistReason.EXPIRED
    return RelistReason.UNDECODABLE if isinstance(error, Undecodable) else RelistReason.FAILED


def _wish_of(error: Exception | None) -> float:
    """How long the server asks to be left alone, within reason."""
    wish = error.retry_after if isinstance(error, ApiError) else None
    return min(wish or 0.0, RETRY_AFTER_MAX_SECONDS)
