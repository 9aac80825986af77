"""One watch of the model API server, as its client sees it: whole lines, an end, or a break."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from ktrainer.client.errors import ConnectionLost, StreamExpired, StreamIdle, TransportError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from ktrainer.client.selectors import Selectors


class ModelStream:
    """A watch that the server writes to and the client reads from."""

    def __init__(self, after: int, namespace: str, selectors: Selectors, *, metadata_only: bool) -> None:
        self.after = after
        """Changes of later revisions are sent."""
        self.namespace = namespace
        self.selectors = selectors
        self.metadata_only = metadata_only
        self.budget: int | None = None
        """Bytes after which the connection breaks; a line that does not fit never arrives."""
        self.is_frozen = False
        """Whether nothing arrives any more, and nobody notices."""
        self._waiting: deque[bytes | TransportError | None] = deque()
        self._arrival = asyncio.Event()
        self._timers: list[asyncio.TimerHandle] = []

    def send(self, line: bytes) -> None:
        if self.is_frozen:
            return
        if self.budget is not None:
            self.budget -= len(line) + 1
            if self.budget < 0:
                self.break_off(ConnectionLost("cut in the middle of a line"))
                return
        self._put(line)

    def end(self) -> None:
        if not self.is_frozen:
            self._put(None)

    def break_off(self, error: TransportError) -> None:
        if not self.is_frozen:
            self._put(error)

    def expire(self) -> None:
        """The client's part: a stream may not go on for ever, whether something comes or not."""
        self._put(StreamExpired("it goes on for too long"))

    def every(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something again and again until the stream is closed."""

        def act() -> None:
            action()
            self.every(seconds, action)

        self.after_seconds(seconds, act)

    def after_seconds(self, seconds: float, action: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        self._timers = [timer for timer in self._timers if timer.when() > loop.time()]
        self._timers.append(loop.call_later(seconds, action))

    def close(self) -> None:
        for timer in self._timers:
            timer.cancel()

    async def lines(self, idle_seconds: float | None) -> AsyncIterator[bytes]:
        while True:
            if not self._waiting:
                await self._wait(idle_seconds)
            match self._waiting.popleft():
                case bytes(line):
                    yield line
                case None:
                    return
                case error:
                    raise error

    async def _wait(self, idle_seconds: float | None) -> None:
        self._arrival.clear()
        try:
            async with asyncio.timeout(idle_seconds):
                await self._arrival.wait()
        except TimeoutError:
            raise StreamIdle(f"nothing came for {idle_seconds} s") from None

    def _put(self, item: bytes | TransportError | None) -> None:
        self._waiting.append(item)
        self._arrival.set()
