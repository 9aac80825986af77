"""A small HTTP server as a task of the manager: an address, one handler, with or without TLS.

For health, metrics and progress. Limits of connections and requests are those of `connections`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ktrainer.machinery.serving.connections import DRAIN_SECONDS, HEADER_SECONDS, ConnectionServer

if TYPE_CHECKING:
    import ssl

    from ktrainer.machinery.serving.address import Address
    from ktrainer.machinery.serving.connections import Handler

_log = structlog.get_logger(__name__)

IN_FLIGHT_SECONDS = 5.0
"""How long requests that are under way may take once the server is to stop."""


class HttpServer:
    """Serves one handler from `run` until `stop`, or until that is cancelled."""

    def __init__(
        self,
        name: str,
        address: Address,
        handler: Handler,
        *,
        context: ssl.SSLContext | None = None,
        header_seconds: float = HEADER_SECONDS,
    ) -> None:
        self._name = name
        self._address = address
        self._handler = handler
        self._context = context
        self._header_seconds = header_seconds
        self._listening = asyncio.Event()
        self._stop = asyncio.Event()
        self._port = address.port

    @property
    def name(self) -> str:
        """The name of the server, for the log."""
        return self._name

    async def wait_listening(self) -> int:
        """Wait until connections are accepted, and return the port."""
        await self._listening.wait()
        return self._port

    def stop(self) -> None:
        """Let `run` come to its end after it has drained, for callers that find another server meanwhile."""
        self._stop.set()

    async def run(self) -> None:
        """Serve until `stop` or cancelled, then finish what is under way; raises OSError if it cannot listen."""
        server = ConnectionServer(self._handler, self._header_seconds)
        self._port = await server.listen(self._address.host, self._address.port, self._context)
        self._listening.set()
        _log.info("server listens", server=self._name, address=str(self._address), tls=self._context is not None)
        try:
            await self._stop.wait()
            _log.info("server drains", server=self._name, seconds=DRAIN_SECONDS)
            await server.drain(DRAIN_SECONDS)
        finally:
            self._listening.clear()
            server.refuse_connections()
            try:
                await server.finish(IN_FLIGHT_SECONDS)
            finally:
                await server.close()
