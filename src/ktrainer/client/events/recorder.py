"""Records events about objects, for people to read. Nobody ever waits for one: an event that cannot be sent is dropped.

`record` decides at once, and queues what is worth a request; `run` sends it.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Protocol

import orjson
import structlog

from ktrainer.aio.cancellation import uncancelled
from ktrainer.client.errors import FenceClosed, TransportError
from ktrainer.client.events.body import EVENTS, Occurrence, build_event, build_name, build_series, cut_note
from ktrainer.client.events.correlator import Correlator
from ktrainer.client.patchtype import PatchType
from ktrainer.kube.access import Access
from ktrainer.kube.errors import AlreadyExists, ApiError, NotFound
from ktrainer.kube.identity import ObjectKey

if TYPE_CHECKING:
    from datetime import datetime
    from random import Random

    from ktrainer.aio.clock import Clock
    from ktrainer.client.events.body import ObjectReference, Reporter
    from ktrainer.client.events.correlator import Series
    from ktrainer.kube.identity import Resource

ACCESS = (Access(EVENTS, ("create", "patch")),)

QUEUE_LENGTH = 1000
"""How many events may wait to be sent; more are dropped."""

SENDERS = 8
"""How many are sent at once."""

MAX_TRIES = 12
"""How often one is sent that gets no answer."""

RETRY_SECONDS = 10.0
"""The wait between two tries, before jitter of up to a quarter."""

STOP_SECONDS = 2.0
"""How long sending what is queued may take once we are to stop."""

HOUSEKEEPING_SECONDS = 60.0
"""How often series are looked through."""

_log = structlog.get_logger(__name__)


class Writer(Protocol):
    """Writes events. Those of work that only the leader does stand behind the fence, as the work itself."""

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create an object; raises ApiError, TransportError and FenceClosed."""
        ...

    async def patch(self, resource: Resource, key: ObjectKey, body: bytes, patch_type: PatchType) -> bytes:
        """Change an object; raises ApiError, TransportError and FenceClosed."""
        ...


@dataclass(frozen=True, slots=True)
class _Message:
    """One request about an event: its first time, or how often it has happened since."""

    series: Series
    count: int
    at: datetime
    """When it happened last."""


class EventRecorder:
    """Records the events of one process; runs until it is stopped."""

    def __init__(self, writer: Writer, reporter: Reporter, *, clock: Clock, random: Random) -> None:
        self._writer = writer
        self._reporter = reporter
        self._clock = clock
        self._random = random
        self._correlator = Correlator(clock)
        self._queue: asyncio.Queue[_Message | None] = asyncio.Queue(QUEUE_LENGTH + SENDERS)
        """What is to be sent, at most QUEUE_LENGTH; the rest of the room is for None, which ends a sender."""
        self._last_name = 0
        """The number in the last event's name: nanoseconds, but never the same twice."""
        self._is_stopping = asyncio.Event()

    def record(self, regarding: ObjectReference, type: str, reason: str, action: str, note: str) -> None:
        """Note that something happened to an object. Never waits, and raises nothing.

        `type` is Normal or Warning; `reason` and `action` are words in CamelCase, `note` is text for people.
        """
        occurrence = Occurrence(regarding, type, reason, action, cut_note(note))
        series = self._correlator.find(occurrence)
        if series is not None:
            if self._correlator.repeat(series):
                self._send(series)
            return
        if (former := self._correlator.finish(occurrence)) is not None:
            self._send(former)
        series = self._correlator.begin(occurrence, build_name(regarding, self._next_number()))
        if series is None:
            _log.debug("dropping an event, its object has too many", kind=regarding.kind, name=regarding.name)
            return
        self._send(series)

    async def run(self) -> None:
        """Send what has been recorded, until `stop`; what is queued then is still sent, as far as that is quick."""
        async with asyncio.TaskGroup() as group:
            group.create_task(uncancelled(self._keep_house), name="event housekeeping")
            names = [f"event sender {number}" for number in range(SENDERS)]
            senders = [group.create_task(uncancelled(self._send_all), name=name) for name in names]
            await self._is_stopping.wait()
            await self._finish(senders)

    def stop(self) -> None:
        """Ask `run` to end once the queue is empty, or soon; what is recorded from now on is dropped."""
        if not self._is_stopping.is_set():
            self._is_stopping.set()
            for _ in range(SENDERS):
                self._queue.put_nowait(None)

    def _send(self, series: Series) -> None:
        if self._is_stopping.is_set() or self._queue.qsize() >= QUEUE_LENGTH:
            _log.debug("dropping an event, too many wait", reason=series.occurrence.reason)
            return
        # A count is often told long after the last time that it counts.
        age = timedelta(seconds=self._clock.monotonic() - series.happened_at)
        self._queue.put_nowait(_Message(series, series.count, self._clock.now() - age))

    def _next_number(self) -> int:
        # datetime has microseconds only; floats would lose even those.
        now = self._clock.now()
        nanoseconds = (int(now.timestamp()) * 1_000_000 + now.microsecond) * 1000
        self._last_name = max(nanoseconds, self._last_name + 1)
        return self._last_name

    async def _keep_house(self) -> None:
        while not self._is_stopping.is_set():
            try:
                async with asyncio.timeout(HOUSEKEEPING_SECONDS):
                    await self._is_stopping.wait()
            except TimeoutError:
                for series in self._correlator.due():
                    self._send(series)

    async def _send_all(self) -> None:
        while (message := await self._queue.get()) is not None:
            await self._deliver(message)

    async def _finish(self, senders: list[asyncio.Task[None]]) -> None:
        _, late = await asyncio.wait(senders, timeout=STOP_SECONDS)
        if late:
            # As many as are queued: there is a None for each sender that is late, which has one in hand instead.
            _log.warning("dropping events, the API server did not take them in time", events=self._queue.qsize())
        for sender in late:
            sender.cancel()

    async def _deliver(self, message: _Message) -> None:
        for number in range(1, MAX_TRIES + 1):
            is_last = number == MAX_TRIES or self._is_stopping.is_set()
            try:
                await self._write(message)
            except AlreadyExists:
                # A try without an answer succeeded after all, or a repetition has overtaken the first time.
                pass
            except FenceClosed as error:
                _log.info("dropping an event, this process does not lead", reason=str(error))
            except ApiError as error:
                if not error.namespace_terminating:
                    _log.warning("the API server refuses an event", reason=str(error))
            except TransportError as error:
                if not is_last:
                    await self._pause()
                    continue
                _log.warning("dropping an event, the API server cannot be reached", reason=str(error))
            return

    async def _pause(self) -> None:
        """Wait between two tries, or until we are to stop."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(RETRY_SECONDS * (1 + 0.25 * self._random.random())):
                await self._is_stopping.wait()

    async def _write(self, message: _Message) -> None:
        series = message.series
        namespace = series.occurrence.regarding.event_namespace
        event = build_event(series.occurrence, self._reporter, series.name, message.at)
        if message.count > 1:
            event["series"] = build_series(message.count, message.at)
            patch = orjson.dumps({"series": event["series"]})
            try:
                await self._writer.patch(EVENTS, ObjectKey(namespace, series.name), patch, PatchType.MERGE)
                return
            except NotFound:
                # Servers forget events after an hour, or the first request has been dropped: begin anew.
                pass
        await self._writer.create(EVENTS, namespace, orjson.dumps(event))
