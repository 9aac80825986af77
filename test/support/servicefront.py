"""What a Service is to its callers: connections go to replicas that were ready a moment ago, and stay there."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from typing import TYPE_CHECKING, Self

from clusters.ports import LOOPBACK, free_ports
from clusters.wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from support.managers import Manager

PROBE_SECONDS = 1.0
"""The time between two looks at the readiness of the replicas: callers hear of it with a delay."""

_CHUNK_BYTES = 64 * 1024


class ServiceFront:
    """A context manager: inside it, `port` leads to the webhooks of those replicas that are ready."""

    def __init__(self, replicas: Sequence[Manager]) -> None:
        (self.port,) = free_ports(1)
        self._replicas = replicas
        self._ready: list[int] = []
        """The ports of the webhooks that connections go to; replaced as a whole."""
        self._turns = itertools.count()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="service front", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def wait_for_all(self, seconds: float = 30.0) -> None:
        """Wait until connections go to all replicas: that they are ready is noticed a moment later."""
        assert wait_for(lambda: len(self._ready) == len(self._replicas), seconds), "not all replicas are in service"

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, LOOPBACK, self.port)
        probing = asyncio.create_task(self._probe(), name="probes")
        self._started.set()
        await self._stopped.wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(probing, *others, return_exceptions=True)

    async def _probe(self) -> None:
        while True:
            answers = [(each, await asyncio.to_thread(each.probe)) for each in self._replicas]
            self._ready = [each.ports.webhook for each, (status, _) in answers if status == 200]
            await asyncio.sleep(PROBE_SECONDS)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if self._ready:
                port = self._ready[next(self._turns) % len(self._ready)]
                replica = await asyncio.open_connection(LOOPBACK, port)
                try:
                    await asyncio.gather(_relay(reader, replica[1]), _relay(replica[0], writer))
                finally:
                    replica[1].transport.abort()
        writer.transport.abort()


async def _relay(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(_CHUNK_BYTES):
        target.write(data)
        await target.drain()
    if target.can_write_eof():
        target.write_eof()
