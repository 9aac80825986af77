"""A client of one HTTPS connection that does nothing by itself, so that tests decide about every byte."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    """With names in lower case."""
    body: bytes


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def tls(self) -> ssl.SSLObject:
        connection: ssl.SSLObject = self._writer.get_extra_info("ssl_object")
        return connection

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> Answer:
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        status, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await self._reader.readexactly(int(headers.get("content-length", "0")))
        return Answer(int(status.split()[1]), headers, body)

    async def request(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        await self.send(head_of(method, path, len(body), **headers) + body)
        return await self.receive()

    async def post(self, path: str, body: bytes) -> Answer:
        return await self.request("POST", path, body)

    async def is_closed(self) -> bool:
        """Wait for the other side to hang up."""
        try:
            return await self._reader.read(1) == b""
        except OSError:
            return True

    def abort(self) -> None:
        self._writer.transport.abort()


def head_of(method: str, path: str, length: int, **headers: str) -> bytes:
    fields = {"Host": "localhost", "Content-Type": "application/json", "Content-Length": str(length)}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items() if value)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@contextlib.asynccontextmanager
async def connected(
    port: int, authorities: bytes, name: str | None = "localhost", client: tuple[bytes, bytes] | None = None
) -> AsyncIterator[Peer]:
    """Connect to loopback, trusting these authorities only; without a name, SNI is left out and no name checked."""
    context = ssl.create_default_context(cadata=authorities.decode())
    context.check_hostname = name is not None
    if client is not None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"".join(client))
            file.flush()
            context.load_cert_chain(file.name)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name or "")
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
