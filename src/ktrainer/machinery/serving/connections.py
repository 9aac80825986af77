"""The connections of an HTTP server: accepting them, keeping them, getting rid of them.

Idle connections are kept longer than API servers keep theirs, since an API server does not repeat a call that meets a
connection which we are just closing. A client that has begun a request and dawdles over it is dropped. When there are
too many connections, the one that is missed least makes room: a newcomer always gets in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any, cast

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

if TYPE_CHECKING:
    import ssl

    from aiohttp import StreamReader

_log = structlog.get_logger(__name__)

KEEPALIVE_SECONDS = 120.0
"""How long a connection may be idle; an API server gives up an idle connection after 90 s."""

HEADER_SECONDS = 32.0
"""How long a client may take from the first byte of a request's head to the last."""

HANDSHAKE_SECONDS = 10.0
"""How long a TLS handshake may take."""

SHUTDOWN_SECONDS = 5.0
"""How long a client may take to agree to the end of its TLS session."""

MAX_CONNECTIONS = 512
"""Beyond these, one makes room for the newcomer; each costs about 300 KiB.

There is no limit for one address. API servers ask one question at a time on a connection and so need many, and behind
a proxy or address translation they share their address with everybody else.
"""

NEWCOMER_SECONDS = 1.0
"""How long a newcomer is not taken for one that brings no request: those who come together must not drive out each
other."""

DRAIN_SECONDS = 10.0
"""How long a server that is to stop goes on serving: callers hear of it with a delay."""

_CLOSE_SECONDS = 1.0
"""How long connections whose handlers have ended may take to send the rest of their answers."""

Handler = Callable[[web.BaseRequest], Awaitable[web.Response]]


class ConnectionServer(web.Server):
    """Hands the requests of all connections to one handler, which is cancelled when its client goes away."""

    def __init__(self, handler: Handler, header_seconds: float = HEADER_SECONDS) -> None:
        super().__init__(
            self._serve,
            handler_cancellation=True,
            keepalive_timeout=KEEPALIVE_SECONDS,
            access_log=None,
            auto_decompress=False,  # nobody compresses reviews, and a small body must not become a large one
        )
        self._handler = handler
        self.header_seconds = header_seconds
        """How long a client may take over a request's head."""
        self._handling: set[asyncio.Task[object]] = set()
        """The tasks that are inside the handler."""
        self._listener: asyncio.Server | None = None
        self._is_draining = False
        """Whether every answer is the last of its connection."""

    async def listen(self, host: str | None, port: int, context: ssl.SSLContext | None) -> int:
        """Begin to accept connections, in TLS where there is a context, and return the port; raises OSError."""
        self._listener = await asyncio.get_running_loop().create_server(
            self,
            host,
            port,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if context else None,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS if context else None,
        )
        return int(self._listener.sockets[0].getsockname()[1])

    def refuse_connections(self) -> None:
        """Accept no further connections; those that are open go on."""
        if self._listener is not None:
            self._listener.close()

    async def drain(self, seconds: float) -> None:
        """Serve on for so long, but send callers elsewhere with every answer; then accept no further connections."""
        self._is_draining = True
        await asyncio.sleep(seconds)
        self.refuse_connections()

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
        connections = self.connections
        if len(connections) <= MAX_CONNECTIONS:
            return
        others = [
            each for each in connections if isinstance(each, _Connection) and each is not handler and not each.is_gone
        ]
        if len(others) >= MAX_CONNECTIONS:
            min(others, key=lambda each: (each.state, each.since)).drop()

    async def _serve(self, request: web.BaseRequest) -> web.Response:
        connection = cast("_Connection", request.protocol)
        connection.begin_request(request.content)
        task = cast("asyncio.Task[object]", asyncio.current_task())
        self._handling.add(task)
        try:
            response = await self._handler(request)
            if self._is_draining:
                response.force_close()
            return response
        finally:
            self._handling.discard(task)
            connection.end_request()


class _State(IntEnum):
    """What a connection is about; the first of these makes room first."""

    UNPROVEN = auto()
    """It has never brought a complete head, although there was time."""
    IDLE = auto()
    """The last request has been answered."""
    READING = auto()
    """Some of a request is here, or it is new and there was no time yet."""
    HANDLING = auto()
    """All of a request is here, and the answer is not made yet."""


class _Connection(RequestHandler):
    """One connection, which knows how far its request has come."""

    def __init__(self, manager: ConnectionServer, *, loop: asyncio.AbstractEventLoop, **options: Any) -> None:
        super().__init__(manager, loop=loop, **options)
        self._header_seconds = manager.header_seconds
        self.is_gone = False
        """Whether we have hung up, or the other side has."""
        self.since = loop.time()
        """When it was opened, or its request began to come, or its last answer was made, whichever was last."""
        self._is_proven = False
        """Whether there has been a complete head."""
        self._body: StreamReader | None = None
        """The body of the request that is being handled."""
        self._head_timer: asyncio.TimerHandle | None = None
        """Runs from the first byte of a head to its last."""

    @property
    def state(self) -> _State:
        """What it is about now."""
        if self._body is not None:
            return _State.HANDLING if self._body.is_eof() else _State.READING
        if self._is_proven:
            return _State.IDLE if self._head_timer is None else _State.READING
        return _State.READING if self._loop.time() - self.since < NEWCOMER_SECONDS else _State.UNPROVEN

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio, after a handshake."""
        self.since = self._loop.time()
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        if self._body is None and self._head_timer is None:
            self.since = self._loop.time()
            self._head_timer = self._loop.call_later(self._header_seconds, self.drop)
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Called by asyncio."""
        self.is_gone = True
        self._stop_timer()
        super().connection_lost(exc)

    def log_exception(self, *args: Any, **options: Any) -> None:
        """Called by aiohttp for every failure. What is no HTTP is none of ours, and whoever sends it fills no log.

        Its text quotes what was sent, and so perhaps a token.
        """
        error = options.get("exc_info")
        if isinstance(error, HttpProcessingError):
            _log.debug("not a request", problem=type(error).__name__)
        else:
            super().log_exception(*args, **options)

    def begin_request(self, body: StreamReader) -> None:
        """Note that a head is complete; what comes now is this body."""
        self._is_proven = True
        self._body = body
        self._stop_timer()

    def end_request(self) -> None:
        """Note that the next byte begins a head."""
        self._body = None
        self.since = self._loop.time()

    def drop(self) -> None:
        """Hang up."""
        self.is_gone = True
        if self.transport is not None:
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
