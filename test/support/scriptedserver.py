"""A server on loopback that answers with the very bytes that a test has written down, or breaks where it says so.

Each request takes the next script; a script is a sequence of steps. Without a script left, `responder` is asked.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

import orjson

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable, Iterable


class Action(Enum):
    """A step other than sending or waiting."""

    CLOSE = "end the connection properly"
    RESET = "end the connection with a reset"
    HANG = "do nothing until the client goes away"


@dataclass(frozen=True)
class Pause:
    """Wait before the next step."""

    seconds: float


Step: TypeAlias = bytes | Pause | Action
Script: TypeAlias = "tuple[Step, ...]"


@dataclass(frozen=True)
class Seen:
    """A request as it arrived; the names of headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """The connections are counted from 1."""


class ScriptedServer:
    """Serves plain HTTP, or HTTPS with a TLS context."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        self.tls = tls
        self.requests: list[Seen] = []
        self.connections = 0
        self.responder: Callable[[Seen], Script] = _not_expected
        self.greetings: deque[Action] = deque()
        """What happens to the next connections before they can send anything."""
        self._scripts: deque[Script] = deque()
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()

    def will(self, *scripts: bytes | Script) -> None:
        """Answer the next requests so, one script each."""
        self._scripts.extend((script,) if isinstance(script, bytes) else script for script in scripts)

    @property
    def port(self) -> int:
        if self._server is None:
            raise RuntimeError("not listening")
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    async def listen(self, port: int = 0) -> None:
        # Some tests connect a hundred times at once: a client beyond the backlog would wait a real second.
        self._server = await asyncio.start_server(self._handle, "127.0.0.1", port, backlog=1024)

    async def stop(self) -> None:
        """Close the listener and all connections."""
        if self._server is not None:
            self._server.close()
        for handler in self._handlers:
            handler.cancel()
        if self._handlers:
            await asyncio.wait(self._handlers)
        if self._server is not None:
            await self._server.wait_closed()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("not in a task")
        self._handlers.add(task)
        self.connections += 1
        try:
            await self._converse(reader, writer, self.connections)
        except (OSError, EOFError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(task)
            with suppress(OSError):
                writer.close()
                await writer.wait_closed()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        if self.greetings:
            await _act(self.greetings.popleft(), reader, writer)
            return
        if self.tls is not None:
            # Not left to the listener, which calls a client that does not trust us an error of the event loop.
            await writer.start_tls(self.tls)
        while True:
            seen = await _read_request(reader, number)
            self.requests.append(seen)
            script = self._scripts.popleft() if self._scripts else self.responder(seen)
            for step in script:
                if isinstance(step, bytes):
                    writer.write(step)
                    await writer.drain()
                elif isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                else:
                    await _act(step, reader, writer)
                    return


@asynccontextmanager
async def serving(tls: ssl.SSLContext | None = None) -> AsyncIterator[ScriptedServer]:
    """A server for the length of a test."""
    server = ScriptedServer(tls)
    await server.listen()
    try:
        yield server
    finally:
        await server.stop()


def answer(status: int = 200, body: bytes | object = b"{}", headers: Iterable[tuple[str, str]] = ()) -> bytes:
    """A whole answer; a body that is no bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    return head(status, [("Content-Length", str(len(content))), *headers]) + content


def failure(status: int, reason: str, message: str = "no", headers: Iterable[tuple[str, str]] = ()) -> bytes:
    """An answer with a Status, as API servers refuse."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "reason": reason}
    return answer(status, body | {"message": message}, headers)


def head(status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> bytes:
    """The beginning of an answer."""
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


def chunk(content: bytes) -> bytes:
    """One chunk of a chunked body; an empty one ends it."""
    return f"{len(content):x}\r\n".encode() + content + b"\r\n"


CHUNKED = head(200, [("Transfer-Encoding", "chunked"), ("Content-Type", "application/json")])
"""The beginning of a watch."""


def _not_expected(seen: Seen) -> Script:
    return (answer(500, f"the test did not expect {seen.method} {seen.path}".encode()),)


async def _act(action: Action, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if action is Action.RESET:
        # Closing a socket that lingers for no time sends a reset.
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    elif action is Action.HANG:
        while await reader.read(65536):
            pass


async def _read_request(reader: asyncio.StreamReader, number: int) -> Seen:
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, path, _ = lines[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, path, headers, body, number)
