"""What the client needs from an HTTP library: four methods, so that another library can take the place of ours.

A transport authenticates and encrypts. It sends a request once, except where it knows that the server has refused to
look at it; whether to send it again is decided above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager


@dataclass(frozen=True, slots=True)
class Request:
    """One request, to be sent as it is."""

    method: str
    path: str
    """With the query, percent-encoded."""
    headers: Mapping[str, str]
    """Those of this request; the transport adds its own."""
    body: bytes | None
    timeout_seconds: float | None
    """Until the last byte of the answer has come; None waits without limit."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole answer, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Looked up in any case; a header that occurs several times shows several times in `items`."""
    body: bytes


class Stream(Protocol):
    """An answer whose body is still coming."""

    @property
    def status(self) -> int:
        """The status of the answer."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """As those of a `Response`."""
        ...

    def chunks(self) -> AsyncIterator[bytes]:
        """The body in pieces as they come, cut anywhere; ends with the body, and raises StreamBroken without an end."""
        ...


class Transport(Protocol):
    """One pool of connections to one API server. All but `reset` raise TransportError."""

    async def request(self, request: Request) -> Response:
        """Send a request and return the whole answer."""
        ...

    def stream(self, request: Request, *, idle_seconds: float | None) -> AbstractAsyncContextManager[Stream]:
        """Send a request and return the answer as soon as its headers are there; leaving the context closes it.

        Raises StreamIdle when nothing comes for `idle_seconds`, and StreamExpired after the request's timeout.
        """
        ...

    def reset(self) -> None:
        """Use no connection any more that is idle now, as after a change of certificates."""
        ...

    async def close(self) -> None:
        """Close all connections; the transport cannot be used any more."""
        ...
