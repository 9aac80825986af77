"""Puts the parts together: the clients of one process for one API server."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ktrainer.client.client import FENCED_WRITE_SECONDS, Client, Timeouts
from ktrainer.client.credentials.credentials import build_credentials
from ktrainer.client.metrics import ClientMetrics
from ktrainer.client.retry import RETRY_AFTER_MAX_SECONDS
from ktrainer.client.servertime import ServerTime
from ktrainer.client.throttle import Throttle
from ktrainer.client.transport.aiohttptransport import AiohttpTransport
from ktrainer.client.transport.tls import TlsContexts
from ktrainer.client.useragent import user_agent

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry

    from ktrainer.aio.clock import Clock
    from ktrainer.client.config.config import ConnectionConfig
    from ktrainer.client.credentials.credentials import Credentials

REQUEST_CONNECTIONS = 32
"""How many requests are under way at once; others wait for their turn."""

WATCH_CONNECTIONS = 0
"""No limit: each watch holds a connection for minutes."""

RECONCILER_WAIT_SECONDS = 5.0
"""How long a request of a reconciler waits at most each time that the server asks for it: ten tries are over before the
minute is that a turn may take. Whoever asks for more is told to the queue, which can wait without holding a worker."""

CACHE_WAIT_SECONDS = 1.0
"""How long lists and watches of a cache wait at most each time that the server asks for it: an informer keeps longer
waits itself, and tells why it is not complete meanwhile."""

LEASE_CONNECTIONS = 2
"""One for the renewal, and one for the next when that hangs."""

LEASE_WAIT_SECONDS = 1.0
"""How long a request about the lease waits at most where the server asks for it: whoever takes part in an election has
a pace of his own, and a renewal that waits for long would use up the time that there is for it."""

LEASE_SECONDS = 5.0
"""The time limit of a request about the lease: half the default deadline for its renewal, so that one may hang."""


class Connection:
    """The clients of one process, which share credentials and the server's time."""

    def __init__(  # noqa: PLR0913 - one for each purpose
        self,
        client: Client,
        unfenced: Client,
        cache_client: Client,
        lease_client: Client,
        *,
        throttled: Callable[[float, int], Client],
        parts: tuple[AiohttpTransport | Credentials, ...],
    ) -> None:
        self.client = client
        """For everything that only the leader does; long waits are left to the queues."""
        self.unfenced = unfenced
        """Writes without asking the fence: for what every replica does, such as recording events."""
        self.cache_client = cache_client
        """For caches: as `unfenced`, but long waits are left to the informers."""
        self.lease_client = lease_client
        """For the lease alone: connections of its own, no rate limit, no fence, short waits and time limits."""
        self.throttled = throttled
        """Makes a client as `unfenced`, but with its own rate limit: so many requests a second, and so many at once."""
        self._parts = parts

    async def close(self) -> None:
        """Close all connections; the clients cannot be used any more."""
        for part in self._parts:
            await part.close()


def connect(  # noqa: PLR0913 - a composition of parts
    config: ConnectionConfig,
    *,
    component: str,
    clock: Clock,
    registry: CollectorRegistry,
    qps: float,
    burst: int,
    fence: Callable[[], None] | None = None,
    fenced_write_seconds: float = FENCED_WRITE_SECONDS,
    lease_seconds: float = LEASE_SECONDS,
) -> Connection:
    """Return the clients for a server; call it where an event loop runs. Connections are made when they are needed.

    `fenced_write_seconds` must not be more than the lease lasts beyond its renewal deadline. Raises ConfigError where
    certificates cannot be used.
    """
    tls = TlsContexts(config.tls, clock)
    credentials = build_credentials(config.credentials, clock)
    metrics = ClientMetrics(registry, urlsplit(config.server).netloc)
    server_time = ServerTime(clock)
    throttle = Throttle(qps, burst, clock)
    random = Random()

    def pool(limit: int, name: str) -> AiohttpTransport:
        return AiohttpTransport(config, tls=tls, credentials=credentials, user_agent=user_agent(name), limit=limit)

    requests = pool(REQUEST_CONNECTIONS, component)
    watches = pool(WATCH_CONNECTIONS, component)
    lease = pool(LEASE_CONNECTIONS, "leader-election")

    def client(
        fence: Callable[[], None] | None = None,
        timeouts: Timeouts | None = None,
        throttle: Throttle = throttle,
        max_wait_seconds: float = RETRY_AFTER_MAX_SECONDS,
    ) -> Client:
        return Client(
            requests,
            throttle=throttle,
            metrics=metrics,
            fence=fence,
            clock=clock,
            random=random,
            watch_transport=watches,
            server_time=server_time,
            timeouts=timeouts,
            max_wait_seconds=max_wait_seconds,
        )

    fenced = Timeouts(write_seconds=fenced_write_seconds) if fence else None
    return Connection(
        client=client(fence, fenced, max_wait_seconds=RECONCILER_WAIT_SECONDS),
        unfenced=client(),
        cache_client=client(max_wait_seconds=CACHE_WAIT_SECONDS),
        lease_client=Client(
            lease,
            throttle=Throttle(0, 0, clock),
            metrics=metrics,
            fence=None,
            clock=clock,
            random=random,
            server_time=server_time,
            timeouts=Timeouts(lease_seconds, lease_seconds),
            max_wait_seconds=LEASE_WAIT_SECONDS,
        ),
        throttled=lambda qps, burst: client(throttle=Throttle(qps, burst, clock)),
        parts=(requests, watches, lease, credentials),
    )
