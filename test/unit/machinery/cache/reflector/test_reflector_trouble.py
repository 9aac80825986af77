"""How an informer bears with a server that does not serve."""

import asyncio
from random import Random

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from ktrainer.client.config.config import ConnectionConfig, TlsConfig
from ktrainer.client.connect import connect
from ktrainer.client.errors import ConnectFailed
from ktrainer.machinery.cache.cache import Cache
from ktrainer.machinery.cache.delta import Snapshot
from ktrainer.machinery.cache.fifo import Fifo
from ktrainer.machinery.cache.instruments import Instruments
from ktrainer.machinery.cache.metrics import CacheMetrics
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.record import InformerRecord, RelistReason
from ktrainer.machinery.cache.reflector.reflector import ABSENT_MAX_SECONDS, Reflector
from ktrainer.machinery.cache.source import Source
from ktrainer.machinery.cache.vitals import Vitals
from ktrainer.machinery.cache.written import WrittenVersions
from support.informers import (
    WIDGET_VIEW,
    contents_of,
    contents_of_server,
    informing,
    is_absent,
    is_synced,
    running,
    warnings_of,
)
from support.modelevents import api_error
from support.modelserver import ModelServer
from support.scriptedserver import failure, serving
from support.virtualtime import VirtualClock, settle


@pytest.mark.parametrize(
    ("error", "reason"),
    [(api_error(401, "Unauthorized"), "unauthorized"), (api_error(403, "Forbidden"), "forbidden")],
)
async def test_a_refusal_should_be_retried_for_ever_and_said_once(error: Exception, reason: str) -> None:
    server = ModelServer()
    server.create("a")
    server.outage = error
    with capture_logs() as logs:
        async with informing(server) as (informer, _):
            await asyncio.sleep(60)
            assert len(server.take()) <= 10
            await asyncio.sleep(3600)
            assert 60 <= len(server.take()) <= 120
            assert reason in (informer.last_error or "").lower()
            assert warnings_of(logs) == ["cannot list or watch; trying again"]
            server.outage = None
            await asyncio.sleep(60)
            assert is_synced(informer)
            assert informer.last_error is None
    assert [entry["event"] for entry in logs if entry["log_level"] == "info"] == ["list and watch work again"]


async def test_a_server_that_sheds_load_should_be_left_alone_and_its_word_be_told(virtual_clock: VirtualClock) -> None:
    registry = CollectorRegistry()
    async with serving() as server:
        server.responder = lambda _: (failure(429, "TooManyRequests", headers=[("Retry-After", "30")]),)
        connection = connect(
            ConnectionConfig(server.url, TlsConfig(insecure=True)),
            component="test",
            clock=virtual_clock,
            registry=registry,
            qps=0,
            burst=0,
        )
        metrics, written = CacheMetrics(registry, virtual_clock), WrittenVersions(registry, ())
        cache = Cache(connection.cache_client, clock=virtual_clock, random=Random(0), metrics=metrics, written=written)
        informer = cache.register(WIDGET_VIEW)
        with capture_logs() as logs:
            async with running(cache):
                await asyncio.sleep(1)
                assert "TooManyRequests" in (informer.last_error or "")
                await asyncio.sleep(299)
        assert 5 <= len(server.requests) <= 10
        assert warnings_of(logs) == ["cannot list or watch; trying again"]
        await connection.close()


async def test_trouble_should_be_said_again_when_it_changes() -> None:
    server = ModelServer(outage=api_error(403, "Forbidden"))
    with capture_logs() as logs:
        async with informing(server):
            await asyncio.sleep(300)
            server.outage = api_error(503, "ServiceUnavailable")
            await asyncio.sleep(300)
            server.outage = ConnectFailed("refused", refused=True)
            await asyncio.sleep(300)
    assert warnings_of(logs) == ["cannot list or watch; trying again"] * 3


async def test_permissions_that_are_taken_away_should_not_cost_what_is_known() -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(5)
        server.outage = api_error(403, "Forbidden")
        server.cut()
        await asyncio.sleep(120)
        assert len(informer.store) == 1
        server.create("b")
        server.outage = None
        await asyncio.sleep(65)
        assert contents_of(informer.store) == contents_of_server(server)
        assert sorted(recorder.take()[1:]) == [("add", "default/b"), ("sync", "default/a")]


async def test_an_outage_should_cost_one_list_at_most() -> None:
    server = ModelServer()
    for number in range(1000):
        server.create(f"w{number}")
    async with informing(server) as (informer, _):
        await asyncio.sleep(5)
        server.take()
        server.outage = ConnectFailed("refused", refused=True)
        server.cut()
        await asyncio.sleep(30)
        assert len(server.take()) <= 10
        server.outage = api_error(503, "ServiceUnavailable")
        await asyncio.sleep(2)
        server.outage = None
        server.create("late")
        await asyncio.sleep(60)
        assert contents_of(informer.store) == contents_of_server(server)
        assert sum(each != "watch 1100" for each in server.take()) <= 3


async def test_a_storm_of_expiries_should_not_become_a_storm_of_lists() -> None:
    server = ModelServer()
    keys = [server.create(f"w{number}") for number in range(120)]
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(5)
        server.take()
        recorder.take()
        for key in keys:
            server.delete(key)
            server.create(f"new-{key.name}")
            server.compact()
            server.send_error(410, "Expired")
            await asyncio.sleep(1)
        assert len([each for each in server.take() if each.startswith(("state", "list"))]) <= 10
        await asyncio.sleep(65)
        assert contents_of(informer.store) == contents_of_server(server)
        told = recorder.take()
        gone = [name for what, name in told if what in {"delete", "tombstone"}]
        assert sorted(gone) == sorted(str(key) for key in keys)


async def test_a_missing_kind_should_be_waited_for_and_said_once() -> None:
    server = ModelServer(outage=api_error(404, "NotFound"))
    server.create("a")
    with capture_logs() as logs:
        async with informing(server) as (informer, _):
            await asyncio.sleep(60)
            assert len(server.take()) <= 10
            await asyncio.sleep(300)
            assert not is_synced(informer)
            assert is_absent(informer)
            assert warnings_of(logs) == ["the server does not know the kind; waiting for it"]
            server.outage = None
            await asyncio.sleep(12)
            assert is_synced(informer)
            assert not is_absent(informer)
            assert contents_of(informer.store) == contents_of_server(server)
    assert ABSENT_MAX_SECONDS < 12


async def test_a_kind_that_is_taken_away_should_be_picked_up_when_it_comes_back() -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server) as (informer, _):
        await asyncio.sleep(300)
        server.outage = api_error(404, "NotFound")
        server.cut()
        await asyncio.sleep(100)
        assert is_synced(informer)
        assert is_absent(informer)
        server.outage = None
        server.create("b")
        await asyncio.sleep(12)
        assert contents_of(informer.store) == contents_of_server(server)


async def test_changes_that_nobody_handles_should_be_dropped_and_listed_anew() -> None:
    server = ModelServer()
    key = server.create("a")
    fifo = Fifo[CachedObject](limit=5)
    record, clock = InformerRecord(), VirtualClock()
    instruments = Instruments("widgets", clock, Random(0), record, Vitals("widgets", record, clock))
    task = asyncio.create_task(Reflector(Source(WIDGET_VIEW, server), fifo, instruments, int).run())
    await asyncio.sleep(5)
    for _ in range(4):
        server.update(key)
    await settle()
    assert len(fifo) == 5
    server.update(key)
    await settle()
    assert len(fifo) == 0
    assert record.relists[RelistReason.OVERFLOW] == 1
    await asyncio.sleep(2)
    snapshot = await fifo.get()
    assert isinstance(snapshot, Snapshot)
    assert snapshot.resource_version == "106"
    assert snapshot.mark == 0, "it stands for the quorum read that was dropped"
    assert server.take() == ["state", "state 105"]
    task.cancel()
    await settle()
