"""Just enough HTTP/1.1 to relay requests and answers with a fault at a chosen place."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

_HEAD_END = b"\r\n\r\n"


@dataclass(frozen=True)
class Request:
    """A request as the client sent it."""

    method: str
    target: str
    headers: dict[str, str]
    """By lower-case name."""
    body: bytes = b""
    head: bytes = field(default=b"", repr=False)
    """The head to the byte."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        """The query's parameters."""
        return {
            name: values[-1] for name, values in parse_qs(urlsplit(self.target).query, keep_blank_values=True).items()
        }

    @property
    def is_watch(self) -> bool:
        """Whether the answer is a stream of events."""
        return self.query.get("watch", "") in {"1", "true"}

    @property
    def is_list(self) -> bool:
        """Whether it reads a collection; the collection's name is plural, and an object's name comes after it."""
        return self.method == "GET" and not self.is_watch and "limit" in self.query

    @property
    def is_relist(self) -> bool:
        """Whether it reads all of a collection, as a list (its first page) or as the beginning of a watch."""
        is_first_page = self.is_list and "continue" not in self.query
        return is_first_page or (self.is_watch and "sendInitialEvents" in self.query)

    @property
    def is_write(self) -> bool:
        """Whether it may change something."""
        return self.method not in {"GET", "HEAD", "OPTIONS"}


@dataclass(frozen=True)
class Answer:
    """A whole answer, or only its head where the body is streamed."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""

    def header(self, name: str) -> str | None:
        """Return the value of a header, None where it is absent."""
        return next((value for each, value in self.headers if each.lower() == name), None)

    def encoded_head(self) -> bytes:
        """Return status line and headers as bytes."""
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {self.status} {phrase}", *(f"{name}: {value}" for name, value in self.headers)]
        return "\r\n".join(lines).encode() + _HEAD_END

    def encoded(self) -> bytes:
        """Return the whole answer as bytes, its length told in a header."""
        kept = [
            (name, value) for name, value in self.headers if name.lower() not in {"content-length", "transfer-encoding"}
        ]
        return Answer(self.status, [*kept, ("Content-Length", str(len(self.body)))]).encoded_head() + self.body


async def read_request(reader: asyncio.StreamReader) -> Request:
    """Read one request; raises IncompleteReadError where the client has gone."""
    head = await reader.readuntil(_HEAD_END)
    first, *lines = head[: -len(_HEAD_END)].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(method, target, headers, body, head)


async def read_answer_head(reader: asyncio.StreamReader) -> Answer:
    """Read status and headers of an answer."""
    head = await reader.readuntil(_HEAD_END)
    first, *lines = head[: -len(_HEAD_END)].decode("latin-1").split("\r\n")
    headers = [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    return Answer(int(first.split(" ", 2)[1]), headers)


async def body_of(reader: asyncio.StreamReader, answer: Answer, method: str) -> AsyncIterator[bytes]:
    """Yield the pieces of an answer's body as they arrive."""
    if method == "HEAD" or answer.status in {204, 304}:
        return
    if (answer.header("transfer-encoding") or "").lower() == "chunked":
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            yield await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return
    length = answer.header("content-length")
    if length is not None:
        yield await reader.readexactly(int(length))
        return
    while piece := await reader.read(65536):
        yield piece


def chunk_of(data: bytes) -> bytes:
    """Return data as one chunk of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"
