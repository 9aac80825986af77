"""Transports and clients for a scripted server."""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from clusters.pki import Authority
from ktrainer.client.client import Client
from ktrainer.client.config.config import ConnectionConfig, TlsConfig
from ktrainer.client.credentials.credentials import FixedCredentials
from ktrainer.client.metrics import ClientMetrics
from ktrainer.client.throttle import Throttle
from ktrainer.client.transport.aiohttptransport import AiohttpTransport
from ktrainer.client.transport.tls import TlsContexts
from support.scriptedserver import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from clusters.pki import Pair
    from ktrainer.aio.clock import Clock
    from ktrainer.client.credentials.credentials import Credentials
    from ktrainer.client.transport.transport import Transport
    from support.scriptedserver import ScriptedServer


@asynccontextmanager
async def transport_to(
    server: ScriptedServer | str,
    clock: Clock,
    *,
    tls: TlsConfig | None = None,
    credentials: Credentials | None = None,
    proxy: str = "",
) -> AsyncIterator[AiohttpTransport]:
    """A transport that is closed at the end of the test."""
    url = server if isinstance(server, str) else server.url
    # Loading the authorities that the system trusts takes longer than most tests.
    config = ConnectionConfig(url, tls=tls or TlsConfig(insecure=True), proxy=proxy)
    transport = AiohttpTransport(
        config,
        tls=TlsContexts(config.tls, clock),
        credentials=credentials or FixedCredentials(),
        user_agent="test",
        limit=4,
    )
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def client_and_server(
    clock: Clock, *, fence: Callable[[], None] | None = None, registry: CollectorRegistry | None = None
) -> AsyncIterator[tuple[Client, ScriptedServer]]:
    """A server, and a client without a rate limit that talks to it."""
    async with serving() as server, transport_to(server, clock) as transport:
        yield client_over(transport, clock, fence=fence, registry=registry), server


def client_over(
    transport: Transport,
    clock: Clock,
    *,
    fence: Callable[[], None] | None = None,
    registry: CollectorRegistry | None = None,
    throttle: Throttle | None = None,
    watch_transport: Transport | None = None,
) -> Client:
    """A client that uses this transport for everything, unless there is another one for watches."""
    return Client(
        transport,
        throttle=throttle or Throttle(0, 0, clock),
        metrics=ClientMetrics(registry or CollectorRegistry(), "test"),
        fence=fence,
        clock=clock,
        random=Random(0),
        watch_transport=watch_transport,
    )


@cache
def authority(name: str = "authority") -> Authority:
    """A certificate authority, the same for the same name."""
    return Authority(name)


def server_tls(folder: Path, pair: Pair, client_authority: bytes = b"") -> ssl.SSLContext:
    """The TLS context of a server; with an authority for clients it asks them for a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair.write(folder / "server.crt", folder / "server.key")
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    if client_authority:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_authority.decode())
    return context
