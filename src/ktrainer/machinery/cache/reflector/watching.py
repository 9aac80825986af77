"""One watch at a time: opening it, reading it to its end, and telling how it went."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from ktrainer.client.errors import StreamIdle, TransportError
from ktrainer.kube.errors import ApiError
from ktrainer.machinery.cache.delta import Bookmark
from ktrainer.machinery.cache.fifo import Overflow
from ktrainer.machinery.cache.objects import T
from ktrainer.machinery.cache.reflector.endings import WatchEnd
from ktrainer.machinery.cache.reflector.events import Undecodable
from ktrainer.machinery.cache.reflector.pace import Pace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from ktrainer.machinery.cache.delta import Event
    from ktrainer.machinery.cache.instruments import Instruments
    from ktrainer.machinery.cache.reflector.endings import WatchError
    from ktrainer.machinery.cache.reflector.events import LineDecoder
    from ktrainer.machinery.cache.source import Source

MIN_SECONDS, MAX_SECONDS = 300, 600
"""Between these the server is asked to end a watch, so that the watches of many clients spread over its instances."""


@dataclass(slots=True)
class _Progress:
    """How far a watch has got."""

    is_open: bool = False
    lines: int = 0
    bookmarks: int = 0
    has_news: bool = False


class Watcher(Generic[T]):
    """Watches one view."""

    def __init__(
        self,
        source: Source[T],
        lines: LineDecoder[T],
        instruments: Instruments,
        consume: Callable[[Event[T]], bool],
    ) -> None:
        """`consume` gets every event, returns whether it is news, and may raise Overflow."""
        self._source = source
        self._lines = lines
        self._instruments = instruments
        self._consume = consume

    async def watch(self, version: str, *, initial_events: bool, idle_seconds: float | None) -> WatchEnd:
        """Watch from a version until the stream ends, however it does; cancelling closes the stream."""
        seconds = self._instruments.random.randrange(MIN_SECONDS, MAX_SECONDS)
        stream = self._source.watch(
            version, initial_events=initial_events, timeout_seconds=seconds, idle_seconds=idle_seconds
        )
        began_at = self._instruments.clock.monotonic()
        progress = _Progress()
        error: WatchError | None = None
        try:
            await self._read(stream, progress, is_proof=not initial_events)
        except (ApiError, TransportError, Undecodable, Overflow) as caught:
            error = caught
        lasted = self._instruments.clock.monotonic() - began_at
        end = WatchEnd(error, progress.is_open, lasted, progress.lines, progress.bookmarks, progress.has_news)
        self._count(end)
        return end

    def _count(self, end: WatchEnd) -> None:
        record = self._instruments.record
        if end.is_open:
            record.watch_seconds.observe(end.seconds)
        record.short_watches += end.is_short
        record.idle_timeouts += isinstance(end.error, StreamIdle)

    async def _read(
        self, stream: AbstractAsyncContextManager[AsyncIterator[bytes]], progress: _Progress, *, is_proof: bool
    ) -> None:
        """Read to the end; `is_proof` if being let in is proof that all is well."""
        heard, decode, consume, pace = self._instruments.vitals.heard, self._lines.decode, self._consume, Pace()
        async with stream as lines:
            progress.is_open = True
            heard()
            if is_proof:
                self._instruments.vitals.works()
            async for line in lines:
                heard()
                progress.lines += 1
                event = decode(line)
                progress.bookmarks += isinstance(event, Bookmark)
                if consume(event):
                    progress.has_news = True
                # Lines that have arrived already come without a pause, so others need one.
                if pace.is_slice_over(len(line)):
                    await asyncio.sleep(0)
