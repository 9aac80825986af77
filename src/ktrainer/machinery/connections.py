"""The TLS connections of an HTTP server: accepting them, keeping them, getting rid of them.

Idle connections are kept longer than API servers keep theirs, since an API server does not repeat a call that meets a
connection which we are just closing. A client that has begun a request and dawdles over it is dropped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

if TYPE_CHECKING:
    import ssl

KEEPALIVE_SECONDS = 120.0
"""How long a connection may be idle; an API server gives up an idle connection after 90 s."""

HEADER_SECONDS = 32.0
"""How long a client may take from the first byte of a request's head to the last."""

HANDSHAKE_SECONDS = 10.0
"""How long a TLS handshake may take."""

SHUTDOWN_SECONDS = 5.0
"""How long a client may take to agree to the end of its TLS session."""

MAX_CONNECTIONS = 512
"""Beyond these, the oldest that has never brought a request is dropped; each costs about 300 KiB."""

_CLOSE_SECONDS = 1.0
"""How long connections whose handlers have ended may take to send the rest of their answers."""

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


class ConnectionServer(web.Server):
    """Hands the requests of all connections to one handler, which is cancelled when its client goes away."""

    def __init__(self, handler: Handler) -> None:
        super().__init__(
            self._serve,
            handler_cancellation=True,
            keepalive_timeout=KEEPALIVE_SECONDS,
            access_log=None,
            auto_decompress=False,  # nobody compresses reviews, and a small body must not become a large one
        )
        self._handler = handler
        self._handling: set[asyncio.Task[object]] = set()
        """The tasks that are inside the handler."""
        self._listener: asyncio.Server | None = None

    async def listen(self, host: str | None, port: int, context: ssl.SSLContext) -> int:
        """Begin to accept connections, and return the port; raises OSError."""
        self._listener = await asyncio.get_running_loop().create_server(
            self,
            host,
            port,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS,
        )
        return int(self._listener.sockets[0].getsockname()[1])

    def refuse_connections(self) -> None:
        """Accept no further connections; those that are open go on."""
        if self._listener is not None:
            self._listener.close()

    async def finish(self, seconds: float) -> None:
        """Wait until no request is being handled, but not longer than so many seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while self._handling and loop.time() < deadline:
            await asyncio.wait(self._handling, timeout=deadline - loop.time())

    async def close(self) -> None:
        """Cancel what is being handled, and close all connections."""
        self.refuse_connections()
        for task in self._handling:
            task.cancel()
        if self._handling:
            await asyncio.wait(self._handling)
        self.pre_shutdown()
        await self.shutdown(_CLOSE_SECONDS)

    def __call__(self) -> RequestHandler:
        """Called by asyncio for every connection."""
        return _Connection(self, loop=asyncio.get_running_loop(), **self._kwargs)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        """Called by aiohttp after a handshake."""
        super().connection_made(handler, transport)
        if len(self.connections) > MAX_CONNECTIONS:
            next(each for each in self.connections if isinstance(each, _Connection) and not each.is_proven).drop()

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        connection = cast(_Connection, request.protocol)
        connection.begin_request()
        task = cast(asyncio.Task[object], asyncio.current_task())
        self._handling.add(task)
        try:
            return await self._handler(request)
        finally:
            self._handling.discard(task)
            connection.end_request()


class _Connection(RequestHandler):
    """One connection, which knows whether it is in the middle of a request's head."""

    def __init__(self, manager: web.Server, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(manager, loop=loop, **options)
        self.is_proven = False
        """Whether there has been a complete head, or we have hung up and need not do so again."""
        self._is_in_request = False
        """Whether what comes is the body of a request."""
        self._head_timer: asyncio.TimerHandle | None = None
        """Runs from the first byte of a head to its last."""

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if not self._is_in_request and self._head_timer is None:
            self._head_timer = self._loop.call_later(HEADER_SECONDS, self.drop)
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Called by asyncio."""
        self._stop_timer()
        super().connection_lost(exc)

    def begin_request(self) -> None:
        """Note that a head is complete."""
        self.is_proven = self._is_in_request = True
        self._stop_timer()

    def end_request(self) -> None:
        """Note that the next byte begins a head."""
        self._is_in_request = False

    def drop(self) -> None:
        """Hang up."""
        self.is_proven = True
        if self.transport is not None:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
