"""Cuts a stream of bytes into lines, one for each event of a watch.

The pieces of the stream may be cut anywhere, also inside a character. A line without its end is no event: it is
dropped, since the server will tell again what we have not got.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ktrainer.client.errors import LineTooLong

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from ktrainer.client.transport.transport import Stream

LINE_LIMIT = 8 * 1024 * 1024
"""Objects have at most 3 MiB when they are written; managedFields grow on the server."""

GATHERING_SECONDS = 0.01
"""How long events may gather; nobody notices that they come so much later."""

PLENTY = 32 * 1024
"""Bytes that are worth waking up for: where so many have come at once, more are there already."""


class LineSplitter:
    """Finds the lines in a sequence of chunks, in time that is linear in their length."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        """The longest line, in bytes without its end."""
        self._head = bytearray()
        """The beginning of a line whose end has not come; never longer than the limit."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that end in this chunk, without their ends; empty ones are left out.

        Take all of them before feeding the next chunk. Raises LineTooLong in the place of a line beyond the limit,
        and the splitter is of no use after that.
        """
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            self._check(piece)
            line = piece
            if self._head:  # most lines come whole, and need no copy
                line = bytes(self._head + piece)
                self._head.clear()
            if line:
                yield line
        self._check(rest)
        self._head += rest

    def _check(self, piece: bytes) -> None:
        if len(self._head) + len(piece) > self._limit:
            raise LineTooLong(f"a line of the stream has more than {self._limit} bytes")


async def lines_of(stream: Stream, limit: int = LINE_LIMIT) -> AsyncGenerator[bytes, None]:
    """The lines of a stream as they come; raises what the stream raises, and LineTooLong.

    Where pieces come one right after the other, what follows is given a moment to gather: a server sends every event
    by itself, and to wake up for each of thousands costs more than to read them.
    """
    splitter, now = LineSplitter(limit), asyncio.get_running_loop().time
    looked_at = now() - GATHERING_SECONDS
    async for chunk in stream.chunks():
        is_dense = now() - looked_at < GATHERING_SECONDS
        for line in splitter.feed(chunk):
            yield line
        if is_dense and len(chunk) < PLENTY:
            await asyncio.sleep(GATHERING_SECONDS)
        looked_at = now()
