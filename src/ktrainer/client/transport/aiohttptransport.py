"""The transport over aiohttp, which stays behind it: nothing of aiohttp leaves the package.

aiohttp by itself repeats some requests, follows redirects, reads the environment for each request, and gives up on
everything after five minutes. None of this is left on.
"""

from __future__ import annotations

import asyncio
import io
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Self

import aiohttp
from yarl import URL

from ktrainer.client.errors import (
    CertificateRejected,
    ConnectFailed,
    RequestTimeout,
    StreamBroken,
    StreamExpired,
    StreamIdle,
)
from ktrainer.client.transport.aiohttperrors import request_error_of
from ktrainer.client.transport.sockets import open_socket
from ktrainer.client.transport.transport import Response

if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import AsyncIterator, Mapping

    from aiohttp.client_middlewares import ClientHandlerType
    from aiohttp.connector import AddrInfoType

    from ktrainer.client.config.config import ConnectionConfig
    from ktrainer.client.credentials.credentials import Credentials, Grant
    from ktrainer.client.transport.tls import TlsContexts
    from ktrainer.client.transport.transport import Request

CONNECT_SECONDS = 10.0
"""The time limit for a connection to an address, TLS included."""

KEEPALIVE_SECONDS = 15.0
"""How long a connection may be idle and still be used: well below the 90 s after which servers close it."""

OPEN_SECONDS = 60.0
"""The time limit for the headers of a stream."""

LOOK_SECONDS = 5.0
"""How often a stream on which nothing comes is looked after: whether its connection is still there."""

_LARGE_BODY = 512 * 1024
"""From this size on a body is sent in pieces, with other work in between."""

_LIMITS = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)


class _Attempt:
    """One request on its way; says whether it had to open a connection."""

    __slots__ = ("is_reusing",)

    def __init__(self) -> None:
        self.is_reusing = True


_attempt: ContextVar[_Attempt] = ContextVar("attempt")


class AiohttpTransport:
    """One pool of connections to one API server; make it where an event loop runs."""

    def __init__(
        self, config: ConnectionConfig, *, tls: TlsContexts, credentials: Credentials, user_agent: str, limit: int
    ) -> None:
        self._server = config.server
        self._server_name = config.tls.server_name or None
        self._tls = tls
        self._credentials = credentials
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS, socket_factory=_open_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            # Not compressed: the events of a watch would wait for a block to fill, and others are not far away.
            headers={"User-Agent": user_agent, "Accept-Encoding": "identity"},
            middlewares=(_send_once,),
            proxy=config.proxy or None,
            trust_env=False,
        )
        # Not by aiohttp's limit: there, whoever has just been served goes before those who wait.
        self._turns = asyncio.Semaphore(limit) if limit else nullcontext()
        """How many requests may be under way; turns go by arrival."""
        self._streams: set[_AiohttpStream] = set()
        """The streams that are open."""

    async def request(self, request: Request) -> Response:
        """Send a request and return the whole answer."""
        try:
            async with asyncio.timeout(request.timeout_seconds), self._turns:
                response = await self._start(request)
                try:
                    body = await response.read()
                except (aiohttp.ClientError, OSError, RuntimeError) as error:
                    raise request_error_of(error, reused=False)
        except TimeoutError:
            raise RequestTimeout(f"no answer after {request.timeout_seconds} s") from None
        return Response(response.status, response.headers, body)

    @asynccontextmanager
    async def stream(self, request: Request, *, idle_seconds: float | None) -> AsyncIterator[_AiohttpStream]:
        """Send a request and return the answer as soon as its headers are there; leaving the context closes it."""
        try:
            async with asyncio.timeout(OPEN_SECONDS):
                response = await self._start(request)
        except TimeoutError:
            raise RequestTimeout(f"no headers after {OPEN_SECONDS} s") from None
        stream = _AiohttpStream(response, idle_seconds)
        self._streams.add(stream)
        expiry = None
        if request.timeout_seconds is not None:
            expiry = asyncio.get_running_loop().call_later(request.timeout_seconds, stream.expire)
        try:
            yield stream
        finally:
            if expiry is not None:
                expiry.cancel()
            self._streams.discard(stream)
            stream.close()

    def reset(self) -> None:
        """Use no connection any more that is idle now: connections are kept apart by their TLS context."""
        self._tls.renew()

    async def close(self) -> None:
        """Close all connections; the transport cannot be used any more."""
        for stream in list(self._streams):
            # aiohttp would close the connections, and leave those who read from them waiting.
            stream.close()
        await self._session.close()

    async def _start(self, request: Request) -> aiohttp.ClientResponse:
        """Send a request, and again where one side did not trust the other and there is news about that.

        This is safe whatever the request is: the first time nobody looked at it.
        """
        grant = await self._credentials.grant()
        context = self._tls.context(grant.pair)
        try:
            response = await self._send(request, grant, context)
        except CertificateRejected:
            if not self._tls.reject(context):
                raise
        else:
            if response.status != 401 or not self._can_do_better(grant, context):
                return response
            response.close()
        grant = await self._credentials.grant()
        return await self._send(request, grant, self._tls.context(grant.pair))

    def _can_do_better(self, grant: Grant, context: ssl.SSLContext) -> bool:
        has_grant = self._credentials.reject(grant)
        return self._tls.reject(context) or has_grant

    async def _send(self, request: Request, grant: Grant, context: ssl.SSLContext) -> aiohttp.ClientResponse:
        if self._session.closed:
            raise ConnectFailed("the transport is closed")
        body = request.body
        attempt = _Attempt()
        token = _attempt.set(attempt)
        try:
            return await self._session.request(
                request.method,
                URL(self._server + request.path, encoded=True),
                data=body if body is None or len(body) < _LARGE_BODY else io.BytesIO(body),
                headers={**request.headers, "Authorization": grant.header} if grant.header else request.headers,
                allow_redirects=False,
                ssl=context,
                server_hostname=self._server_name,
                timeout=_LIMITS,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise request_error_of(error, reused=attempt.is_reusing)
        finally:
            _attempt.reset(token)


class _AiohttpStream:
    """An answer whose body is still coming; its own iterator, so that nothing is left to be closed."""

    def __init__(self, response: aiohttp.ClientResponse, idle_seconds: float | None) -> None:
        self._response = response
        self._idle_seconds = idle_seconds
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self._is_expired = False

    def chunks(self) -> Self:
        """The body in pieces as they come."""
        return self

    def expire(self) -> None:
        """End the stream, which has lasted too long."""
        self._is_expired = True
        self.close()

    def close(self) -> None:
        """Close the connection: what is still to come must not be taken for the answer to another request."""
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # A farewell in TLS would keep the socket for half a minute where the peer is dead, which is why many a
            # stream is closed, and beyond the end of the event loop.
            connection.transport.abort()
        self._response.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        content = self._response.content
        try:
            chunk = content.read_nowait()
            if not chunk and not content.at_eof():
                chunk = await self._wait_for_chunk(content)
        except (aiohttp.ClientError, OSError, RuntimeError) as error:
            if self._is_expired:
                raise StreamExpired("the stream goes on for too long") from None
            raise StreamBroken(str(error) or type(error).__name__) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def _wait_for_chunk(self, content: aiohttp.StreamReader) -> bytes:
        """Wait for what comes next; empty at the end. Raises StreamIdle and StreamBroken, and what aiohttp raises.

        Where what came makes no sense, aiohttp closes the connection and leaves whoever reads from it waiting. Neither
        do its own timers survive all failures of its parser. So we look ourselves.
        """
        now = asyncio.get_running_loop().time
        idle_at = float("inf") if self._idle_seconds is None else now() + self._idle_seconds
        is_closing = False
        while True:
            look = asyncio.timeout_at(min(now() + LOOK_SECONDS, idle_at))
            try:
                async with look:
                    return await content.readany()
            except TimeoutError:
                if not look.expired():
                    raise
            if now() >= idle_at:
                raise StreamIdle(f"nothing came for {self._idle_seconds} s")
            if is_closing:
                raise StreamBroken("the connection was closed, but the stream has not ended")
            # A body may end with its connection, and the end be on its way; but not from one look to the next.
            connection = self._response.connection
            is_closing = connection is None or connection.closed


def _open_socket(address: AddrInfoType) -> socket.socket:
    attempt = _attempt.get(None)
    if attempt is not None:
        attempt.is_reusing = False
    return open_socket(*address[:3])


async def _send_once(request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
    """Turn errors into ours before aiohttp sees them: it would send some requests again, behind the fence's back."""
    try:
        return await handler(request)
    except (aiohttp.ClientError, OSError) as error:
        raise request_error_of(error, reused=_attempt.get().is_reusing)
