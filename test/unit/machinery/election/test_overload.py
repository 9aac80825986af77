"""An election by way of a real client, at a server that has no room for renewals."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.client.config.config import ConnectionConfig, TlsConfig
from ktrainer.client.connect import connect
from ktrainer.kube.errors import ApiError
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.election.election import Election, LeaseSettings
from ktrainer.machinery.election.leader import LeaseElector, LeaseLost
from ktrainer.machinery.election.metrics import LeaderMetrics
from support.electionsim import LeaseServer
from support.scriptedserver import Script, Seen, answer, failure, serving
from support.virtualtime import VirtualClock

KEY = ObjectKey("system", "trainer")


class LeaseDesk:
    """Answers requests about one Lease, and sends renewals away while it has no room for them."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._lease = LeaseServer()
        self.shed_until = 0.0
        self.renewals: list[float] = []
        """When somebody tried to renew."""

    def answer(self, seen: Seen) -> Script:
        if seen.method == "PUT":
            self.renewals.append(round(self._clock.monotonic(), 3))
            if self._clock.monotonic() < self.shed_until:
                return (failure(429, "TooManyRequests", headers=[("Retry-After", "8")]),)
        acts: dict[str, Callable[[], bytes]] = {
            "GET": self._lease.get,
            "POST": lambda: self._lease.create(seen.body),
            "PUT": lambda: self._lease.update(seen.body),
        }
        try:
            return (answer(200, acts[seen.method]()),)
        except ApiError as error:
            return (failure(error.code, error.reason),)


@asynccontextmanager
async def electing(clock: VirtualClock, desk: LeaseDesk) -> AsyncIterator[LeaseElector]:
    """Take part in an election at a server."""
    registry = CollectorRegistry()
    async with serving() as server:
        server.responder = desk.answer
        config = ConnectionConfig(server.url, TlsConfig(insecure=True))
        connection = connect(config, component="manager", clock=clock, registry=registry, qps=1, burst=1)
        election = Election(LeaseSettings(KEY, "us"), Random(7))
        metrics = LeaderMetrics(registry, "trainer")
        elector = LeaseElector(connection.lease_client, election, clock=clock, metrics=metrics, notify=lambda _: None)
        task = asyncio.create_task(elector.run(lambda: None))
        try:
            yield elector
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, LeaseLost):
                await task
            await connection.close()


@pytest.mark.parametrize("seconds", [6.5, 7.5])
async def test_a_server_that_sheds_renewals_for_a_while_should_not_cost_the_lease(
    virtual_clock: VirtualClock, seconds: float
) -> None:
    desk = LeaseDesk(virtual_clock)
    async with electing(virtual_clock, desk) as elector:
        await asyncio.sleep(3)
        assert desk.renewals == [2]
        desk.shed_until = 2 + seconds
        await asyncio.sleep(12)
        assert elector.is_leading
        # An attempt that fails looks at the Lease and tries once more; none waits for as long as the server asks.
        assert desk.renewals[1:8] == [4, 4, 6, 6, 8, 8, 10]
