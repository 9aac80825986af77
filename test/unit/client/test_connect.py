import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.client.client import Client
from ktrainer.client.config.config import ConfigError, ConnectionConfig, Material, TlsConfig, TokenFile
from ktrainer.client.connect import Connection, connect
from ktrainer.client.errors import ConnectFailed, RequestTimeout
from ktrainer.kube.errors import TooManyRequests
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.control.controller import ControllerSettings
from support.scriptedserver import CHUNKED, Action, Pause, ScriptedServer, answer, chunk, failure, serving
from support.virtualtime import VirtualClock, settle

LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True)
KEY = ObjectKey("ns", "lease")


@asynccontextmanager
async def connected(
    clock: VirtualClock, tmp_path: Path, fence: Callable[[], None] | None = None, **options: Any
) -> AsyncIterator[tuple[Connection, ScriptedServer]]:
    (tmp_path / "token").write_text("secret")
    async with serving() as server:
        connection = connect(
            ConnectionConfig(server.url, TlsConfig(insecure=True), TokenFile(tmp_path / "token")),
            component="manager",
            clock=clock,
            registry=CollectorRegistry(),
            qps=1,
            burst=1,
            fence=fence,
            **options,
        )
        try:
            yield connection, server
        finally:
            await connection.close()


async def test_the_clients_should_share_credentials_but_not_connections(
    tmp_path: Path, virtual_clock: VirtualClock
) -> None:
    async with connected(virtual_clock, tmp_path) as (connection, server):
        server.will(answer(), (CHUNKED, chunk(b"")), answer())
        await connection.client.get(LEASES, KEY)
        async with connection.client.watch(LEASES, resource_version="", timeout_seconds=300, idle_seconds=80) as events:
            assert [line async for line in events] == []
        await connection.lease_client.get(LEASES, KEY)
        assert [seen.connection for seen in server.requests] == [1, 2, 3]
        assert {seen.headers["authorization"] for seen in server.requests} == {"Bearer secret"}
        agents = [seen.headers["user-agent"].rpartition("/")[2] for seen in server.requests]
        assert agents == ["manager", "manager", "leader-election"]
        assert connection.client.server_time is connection.lease_client.server_time


async def test_only_the_lease_should_be_free_of_the_rate_limit(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    async with connected(virtual_clock, tmp_path) as (connection, server):
        server.responder = lambda _: (answer(),)
        for _ in range(10):
            await connection.lease_client.get(LEASES, KEY)
        assert virtual_clock.monotonic() == 0
        for _ in range(3):
            await connection.client.get(LEASES, KEY)
        assert virtual_clock.monotonic() == 2


async def test_a_request_about_the_lease_should_not_wait_for_as_long_as_the_server_asks(
    tmp_path: Path, virtual_clock: VirtualClock
) -> None:
    async with connected(virtual_clock, tmp_path) as (connection, server):
        server.responder = lambda _: (failure(429, "TooManyRequests", headers=[("Retry-After", "2")]),)
        with pytest.raises(TooManyRequests):
            await connection.lease_client.get(LEASES, KEY)
        assert (len(server.requests), virtual_clock.monotonic()) == (1, 0)


async def test_a_reconciler_should_wait_for_little_of_its_turn_and_leave_the_rest_to_its_queue(
    tmp_path: Path, virtual_clock: VirtualClock
) -> None:
    async with connected(virtual_clock, tmp_path, lambda: None) as (connection, server):
        server.responder = lambda _: (failure(429, "TooManyRequests", headers=[("Retry-After", "6")]),)
        with pytest.raises(TooManyRequests) as caught:
            await connection.client.get(LEASES, KEY)
        assert (len(server.requests), virtual_clock.monotonic(), caught.value.retry_after) == (1, 0, 6)
        server.responder = lambda _: (failure(429, "TooManyRequests", headers=[("Retry-After", "5")]),)
        with pytest.raises(TooManyRequests):
            await connection.client.get(LEASES, KEY)
        assert 9 * 5 <= virtual_clock.monotonic() < ControllerSettings("test").timeout_seconds


async def test_the_fence_should_stand_before_one_client_only(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    def fence() -> None:
        raise PermissionError("not leading")

    async with connected(virtual_clock, tmp_path, fence) as (connection, server):
        server.responder = lambda _: (answer(),)
        with pytest.raises(PermissionError):
            await connection.client.create(LEASES, "ns", b"{}")
        await connection.unfenced.create(LEASES, "ns", b"{}")
        await connection.lease_client.create(LEASES, "ns", b"{}")


async def test_each_client_should_have_its_time_limits(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    async with connected(virtual_clock, tmp_path, lambda: None) as (connection, server):
        server.responder = lambda _: (Action.HANG,)

        async def limit_of(call: Callable[[Client], Awaitable[object]], client: Client) -> float:
            began = virtual_clock.monotonic()
            with pytest.raises(RequestTimeout):
                await call(client)
            return virtual_clock.monotonic() - began

        for client, read, write in (
            (connection.client, 60, 5),
            (connection.unfenced, 60, 30),
            (connection.lease_client, 5, 5),
        ):
            assert await limit_of(lambda client: client.get(LEASES, KEY), client) == pytest.approx(read)
            assert await limit_of(lambda client: client.update(LEASES, KEY, b""), client) == pytest.approx(write)


async def test_time_limits_should_follow_the_lease(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    async with connected(virtual_clock, tmp_path, lambda: None, fenced_write_seconds=3, lease_seconds=2) as pair:
        connection, server = pair
        server.responder = lambda _: (Action.HANG,)
        for client, seconds in ((connection.lease_client, 2), (connection.client, 5)):
            with pytest.raises(RequestTimeout):
                await client.update(LEASES, KEY, b"")
            assert virtual_clock.monotonic() == seconds


@pytest.mark.parametrize(("name", "most"), [("client", 32), ("lease_client", 2)])
async def test_requests_should_be_limited_in_number(
    tmp_path: Path, virtual_clock: VirtualClock, name: str, most: int
) -> None:
    async with connected(virtual_clock, tmp_path) as (connection, server):
        server.responder = lambda _: (Pause(0.1), answer())
        client: Client = getattr(connection, name)
        async with asyncio.TaskGroup() as group:
            for number in range(40):
                # Each kind has a budget of its own, so that the rate limit is out of the way.
                kind = Resource("x", "v1", f"Kind{number}", "kinds", namespaced=True)
                group.create_task(client.get(kind, KEY))
            await settle()
            assert server.connections == most


async def test_watches_should_not_be_limited_in_number(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    async with connected(virtual_clock, tmp_path) as (connection, server):
        server.responder = lambda _: (CHUNKED, Pause(1), chunk(b""))

        async def watch() -> None:
            async with connection.client.watch(
                LEASES, resource_version="", timeout_seconds=300, idle_seconds=80
            ) as events:
                assert [line async for line in events] == []

        async with asyncio.TaskGroup() as group:
            for _ in range(110):
                group.create_task(watch())
            await settle()
            assert server.connections == 110


async def test_a_closed_connection_should_refuse(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    async with connected(virtual_clock, tmp_path) as (connection, _):
        await connection.close()
        for client in (connection.client, connection.lease_client):
            with pytest.raises(ConnectFailed):
                await client.get(LEASES, KEY)


async def test_certificates_that_cannot_be_used_should_be_refused_at_once(virtual_clock: VirtualClock) -> None:
    config = ConnectionConfig("https://127.0.0.1", TlsConfig(authorities=Material(data=b"garbage")))
    with pytest.raises(ConfigError, match="not a certificate in PEM"):
        connect(config, component="x", clock=virtual_clock, registry=CollectorRegistry(), qps=0, burst=0)
