"""A small HTTP server as a task of the manager: an address, one handler, with or without TLS.

For health and metrics. Limits of connections and requests are those of `connections`; what the admission server needs
beyond that, such as draining, is its own.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ktrainer.machinery.connections import HANDSHAKE_SECONDS, SHUTDOWN_SECONDS, ConnectionServer

if TYPE_CHECKING:
    import ssl

    from ktrainer.machinery.connections import Handler

_log = structlog.get_logger(__name__)

IN_FLIGHT_SECONDS = 5.0
"""How long requests that are under way may take once the server is to stop."""

OFF = "0"
"""The address of a server that is switched off."""


class Address(NamedTuple):
    """Where to listen."""

    host: str | None
    """A name or an IP address; None means everywhere."""
    port: int
    """0 lets the system choose one."""

    def __str__(self) -> str:
        host = self.host or ""
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


def parse_address(text: str) -> Address | None:
    """Read an address such as `:8443`, `localhost:8443` or `[::1]:8443`; None for OFF. Raises ValueError."""
    if text == OFF:
        return None
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""  # an IPv6 address without brackets, of which nobody can tell where the port begins
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 0xFFFF:
        raise ValueError(f"not an address of the form host:port or :port: {text!r}")
    return Address(host or None, int(port))


class HttpServer:
    """Serves one handler from `run` until that is cancelled."""

    def __init__(self, name: str, address: Address, handler: Handler, *, context: ssl.SSLContext | None = None) -> None:
        self._name = name
        self._address = address
        self._handler = handler
        self._context = context
        self._listening = asyncio.Event()
        self._port = address.port

    @property
    def name(self) -> str:
        """The name of the server, for the log."""
        return self._name

    async def wait_listening(self) -> int:
        """Wait until connections are accepted, and return the port."""
        await self._listening.wait()
        return self._port

    async def run(self) -> None:
        """Serve until cancelled, then finish what is under way; raises OSError if the address is not to be had."""
        server = ConnectionServer(self._handler)
        is_tls = self._context is not None
        listener = await asyncio.get_running_loop().create_server(
            server,
            self._address.host,
            self._address.port,
            ssl=self._context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if is_tls else None,
            ssl_shutdown_timeout=SHUTDOWN_SECONDS if is_tls else None,
        )
        self._port = int(listener.sockets[0].getsockname()[1])
        self._listening.set()
        _log.info("server listens", server=self._name, address=str(self._address), tls=is_tls)
        try:
            await asyncio.Event().wait()
        finally:
            self._listening.clear()
            listener.close()
            try:
                await server.finish(IN_FLIGHT_SECONDS)
            finally:
                await server.close()
