import threading
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from prometheus_client import CollectorRegistry, Counter, Metric
from structlog.testing import capture_logs

from ktrainer.kube.identity import Resource
from ktrainer.machinery.serving.address import Address
from ktrainer.machinery.serving.metricsserver import build_metrics_server
from ktrainer.machinery.serving.scrapeauth import ScrapeAuthorizer
from support.httpserving import build_context, fetch, serving
from support.virtualtime import VirtualClock

LOCAL = Address("127.0.0.1", 0)


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Counter("things", "Things that were counted.", registry=registry).inc(3)
    return registry


async def test_metrics_should_be_served_as_prometheus_wants_them(registry: CollectorRegistry) -> None:
    async with serving(build_metrics_server(LOCAL, registry, context=None, authorizer=None)) as port:
        answer = await fetch(port, "/metrics")
    assert answer.status == 200
    assert "things_total 3.0\n" in answer.text
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert "Connection" not in answer.headers


@pytest.mark.parametrize(
    "path, method, status", [("/", "GET", 404), ("/metrics/x", "GET", 404), ("/metrics", "POST", 405)]
)
async def test_nothing_else_should_be_served(registry: CollectorRegistry, path: str, method: str, status: int) -> None:
    async with serving(build_metrics_server(LOCAL, registry, context=None, authorizer=None)) as port:
        answer = await fetch(port, path, method=method)
    assert (answer.status, answer.headers["Connection"]) == (status, "close")


async def test_values_should_be_collected_in_the_thread_of_the_loop(registry: CollectorRegistry) -> None:
    threads: list[int] = []

    class Collector:
        def collect(self) -> Iterable[Metric]:
            threads.append(threading.get_ident())
            return []

        def describe(self) -> Iterable[Metric]:
            return []

    registry.register(Collector())
    async with serving(build_metrics_server(LOCAL, registry, context=None, authorizer=None)) as port:
        await fetch(port, "/metrics")
    assert threads == [threading.get_ident()]


@pytest.mark.parametrize("host", [None, "::", "192.0.2.1", "example.org"])
async def test_without_tls_the_server_should_be_local(registry: CollectorRegistry, host: str | None) -> None:
    with capture_logs() as logs:
        server = build_metrics_server(Address(host, 0), registry, context=None, authorizer=None)
    assert logs[0]["log_level"] == "warning"
    with capture_logs() as logs:
        async with serving(server):
            pass
    assert logs[0]["address"] == "localhost:0"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1"])
def test_a_local_address_should_be_taken_as_it_is(registry: CollectorRegistry, host: str) -> None:
    with capture_logs() as logs:
        build_metrics_server(Address(host, 0), registry, context=None, authorizer=None)
    assert logs == []


class Api:
    """An API server that knows one token, whose owner may do everything."""

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        is_known = b"good" in body
        return b'{"status": {"authenticated": %b, "allowed": true, "user": {"username": "good"}}}' % (
            b"true" if is_known else b"false"
        )


@pytest.fixture
def authorizer(virtual_clock: VirtualClock) -> ScrapeAuthorizer:
    return ScrapeAuthorizer(Api(), virtual_clock, Random(1))


async def test_only_those_who_may_should_be_served(
    registry: CollectorRegistry, authorizer: ScrapeAuthorizer, tmp_path: Path
) -> None:
    server = build_metrics_server(LOCAL, registry, context=build_context(tmp_path), authorizer=authorizer)
    async with serving(server) as port:
        assert (await fetch(port, "/metrics", tls=True)).status == 401
        answer = await fetch(port, "/metrics", tls=True, Authorization="Bearer bad")
        assert (answer.status, answer.text) == (401, "not a valid token")
        assert answer.headers["Connection"] == "close"
        assert (await fetch(port, "/metrics", tls=True, Authorization="Bearer good")).status == 200


async def test_tokens_should_not_be_asked_for_in_plain_text(
    registry: CollectorRegistry, authorizer: ScrapeAuthorizer
) -> None:
    with pytest.raises(ValueError, match="plain text"):
        build_metrics_server(LOCAL, registry, context=None, authorizer=authorizer)
