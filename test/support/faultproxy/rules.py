"""The faults that the proxy can make, each for the requests that it is told to meet.

A rule is used from the proxy's own thread only; a test replaces the whole list of rules.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from support.faultproxy.http1 import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.faultproxy.http1 import Request

    Match = Callable[[Request], bool]


class Cut(Exception):
    """The connection to the client ends here, in the middle of whatever it was."""


@dataclass
class Rule:
    """A fault, in the order of a request's life. The plain rule does nothing."""

    match: Match
    times: int | None = None
    """How often it strikes at most; without end by default."""
    struck: int = field(default=0, init=False)
    """How often it has struck."""

    def applies_to(self, request: Request) -> bool:
        """Return whether the rule strikes this request, and count that it does."""
        if (self.times is not None and self.struck >= self.times) or not self.match(request):
            return False
        self.struck += 1
        return True

    async def before(self, request: Request) -> Answer | None:
        """Act before the API server sees the request; an Answer is sent instead of asking it. May raise Cut."""
        return None

    async def after(self, request: Request, answer: Answer) -> Answer:
        """Act on the whole answer before the client sees it. May raise Cut."""
        return answer

    async def line(self, request: Request, line: bytes) -> list[bytes]:
        """Act on one event of a watch: the lines that are sent in its place. May raise Cut."""
        return [line]

    def cut_after(self, request: Request) -> tuple[int, int] | None:
        """Return after how many whole events, and bytes of the next with its chunk's head, a watch is cut."""
        return None


@dataclass
class Respond(Rule):
    """Answer in the API server's place."""

    status: int = 500
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)

    async def before(self, request: Request) -> Answer | None:
        """Return the forged answer."""
        return Answer(self.status, [("Content-Type", "application/json"), *self.headers], self.body)


@dataclass
class Delay(Rule):
    """Ask the API server only after a while."""

    seconds: float = 1.0

    async def before(self, request: Request) -> Answer | None:
        """Wait."""
        await asyncio.sleep(self.seconds)
        return None


@dataclass
class Refuse(Rule):
    """Close the connection instead of asking the API server."""

    async def before(self, request: Request) -> Answer | None:
        """Cut."""
        raise Cut


@dataclass
class LoseAnswer(Rule):
    """Let the API server do it, then close the connection without telling."""

    lost: list[Answer] = field(default_factory=list, init=False)
    """What nobody was told."""

    async def after(self, request: Request, answer: Answer) -> Answer:
        """Cut."""
        self.lost.append(answer)
        raise Cut


@dataclass
class Truncate(Rule):
    """Let the API server do it, and pass on the first half of what it answers, as if that were all."""

    async def after(self, request: Request, answer: Answer) -> Answer:
        """Halve."""
        return Answer(answer.status, answer.headers, answer.body[: len(answer.body) // 2])


@dataclass
class Strike(Rule):
    """Do something to somebody, before the API server has heard of the request or once it has answered; then cut."""

    action: Callable[[], None] = field(default=lambda: None)
    """Called in the proxy's thread."""
    is_after: bool = False

    async def before(self, request: Request) -> Answer | None:
        """Strike, or wait for the answer."""
        if self.is_after:
            return None
        self.action()
        raise Cut

    async def after(self, request: Request, answer: Answer) -> Answer:
        """Strike."""
        self.action()
        raise Cut


@dataclass
class Hold(Rule):
    """Let nothing pass any more, for as long as the proxy runs; of the first request only the answer, if `is_after`."""

    is_after: bool = False
    held: threading.Event = field(default_factory=threading.Event, init=False)
    """Set when the first request is held."""
    _first: Request | None = field(default=None, init=False)

    async def before(self, request: Request) -> Answer | None:
        """Hold, or wait for the answer."""
        if self._first is None:
            self._first = request
        return None if self.is_after and request is self._first else await self._hold(request)

    async def after(self, request: Request, answer: Answer) -> Answer:
        """Hold."""
        return await self._hold(request)

    async def _hold(self, request: Request) -> NoReturn:
        if request is self._first:
            self.held.set()
        # Until the proxy ends.
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        raise Cut


@dataclass
class CutStream(Rule):
    """Cut a watch after so many whole events and so many bytes of the next."""

    after_events: int = 0
    after_bytes: int = 0

    def cut_after(self, request: Request) -> tuple[int, int] | None:
        """Return where."""
        return self.after_events, self.after_bytes


@dataclass
class RewriteLines(Rule):
    """Replace the events of a watch."""

    rewrite: Callable[[bytes], list[bytes]] = field(default=lambda line: [line])

    async def line(self, request: Request, line: bytes) -> list[bytes]:
        """Return what takes the event's place."""
        return self.rewrite(line)


@dataclass
class DelayLines(Rule):
    """Hold back those events of a watch that are chosen."""

    chosen: Callable[[bytes], bool] = field(default=lambda _: True)
    seconds: float = 1.0

    async def line(self, request: Request, line: bytes) -> list[bytes]:
        """Wait where the event is chosen."""
        if self.chosen(line):
            await asyncio.sleep(self.seconds)
        return [line]


def status(code: int, reason: str, message: str = "made by a test", **details: Any) -> bytes:
    """Return a Status object as an API server sends it."""
    document = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return json.dumps({**document, "message": message, "details": details}).encode()


def error_event(code: int, reason: str, message: str = "made by a test") -> bytes:
    """Return an ERROR event of a watch."""
    return b'{"type":"ERROR","object":' + status(code, reason, message) + b"}\n"
