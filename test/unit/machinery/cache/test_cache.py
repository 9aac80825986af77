import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from random import Random
from typing import NoReturn

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.client.errors import ConnectFailed, CredentialsFailed, RequestTimeout, TransportError
from ktrainer.client.selectors import Selectors
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.cache.cache import ABSENT_GRACE_SECONDS, SYNC_SECONDS, Cache, SyncTimeout
from ktrainer.machinery.cache.metrics import CacheMetrics
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.reader import NotCached, NotStarted, NotSynced
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.cache.written import WrittenVersions
from support.informers import WIDGET_VIEW, build_cache, is_absent, running
from support.modelevents import api_error
from support.modelserver import WIDGETS, ModelServer
from support.virtualtime import VirtualClock, settle

LABELLED_VIEW = View(WIDGETS, CachedObject, selectors=Selectors(labels="app=x"))
OPTIONAL_VIEW = View(WIDGETS, CachedObject, is_optional=True)
OWNER = ObjectKey("ns", "owner")


class Special(CachedObject, gc=False, frozen=True):
    pass


def names_of(obj: CachedObject) -> Iterable[str]:
    return (obj.metadata.name,)


async def test_reading_should_fail_rather_than_give_a_wrong_answer() -> None:
    server = ModelServer(end_bookmark_seconds=5)
    key = server.create("a")
    cache = build_cache(server)
    reader = cache.register(View(WIDGETS, CachedObject, indexers={"names": names_of})).reader
    for read in (lambda: reader.get(key), reader.list, reader.keys, lambda: reader.by_index("names", "a")):
        with pytest.raises(NotStarted, match="widgets"):
            read()
    async with running(cache):
        await settle()
        for read in (lambda: reader.get(key), reader.list, reader.keys, lambda: reader.by_index("names", "a")):
            with pytest.raises(NotSynced, match="widgets"):
                read()
        await cache.wait_synced()
        obj = reader.get(key)
        assert obj is not None
        assert (reader.list(), reader.keys(), reader.by_index("names", "a")) == ((obj,), (key,), (obj,))
        assert reader.list("other") == reader.by_index("names", "a", "other") == ()


async def test_what_was_not_registered_should_not_be_readable() -> None:
    server = ModelServer()
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    assert cache.reader(WIDGET_VIEW) is cache.register(WIDGET_VIEW).reader
    for view in (LABELLED_VIEW, View(WIDGETS, CachedObject, metadata_only=True), View(WIDGETS, CachedObject, "ns")):
        with pytest.raises(NotCached, match="widgets"):
            cache.reader(view)
    async with running(cache):
        await settle()
        with pytest.raises(RuntimeError, match="started"):
            cache.register(LABELLED_VIEW)
        assert server.take() == ["state"]


async def test_equal_views_should_share_an_informer() -> None:
    cache = build_cache(ModelServer())
    informer = cache.register(WIDGET_VIEW)
    assert cache.register(View(WIDGETS, CachedObject, indexers={"names": names_of})) is informer
    assert informer.store.by_index("names", "a") == ()
    assert cache.register(LABELLED_VIEW) is not informer
    assert cache.informers == (informer, cache.register(LABELLED_VIEW))
    for view in (OPTIONAL_VIEW, View(WIDGETS, CachedObject, transform=lambda obj: obj)):
        with pytest.raises(ValueError, match="another manner"):
            cache.register(view)
    with pytest.raises(ValueError, match="another manner"):
        cache.register(View(WIDGETS, Special))


async def test_a_cache_that_does_not_sync_in_time_should_say_who_and_why(virtual_clock: VirtualClock) -> None:
    server = ModelServer()
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    cache.register(LABELLED_VIEW)
    async with running(cache):
        await cache.wait_synced()
        assert cache.unsynced() == {}
    server = ModelServer(outage=api_error(403, "Forbidden"))
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    began_at = virtual_clock.monotonic()
    async with running(cache):
        with pytest.raises(SyncTimeout, match=r"widgets\.example\.com: Forbidden: 403 Forbidden: it is Forbidden"):
            await cache.wait_synced()
        assert virtual_clock.monotonic() - began_at == SYNC_SECONDS
        assert cache.unsynced() == {"widgets.example.com": "Forbidden: 403 Forbidden: it is Forbidden"}


async def test_a_kind_that_is_yet_to_come_should_be_waited_for_without_limit(virtual_clock: VirtualClock) -> None:
    server = ModelServer(outage=api_error(404, "NotFound"), end_bookmark_seconds=SYNC_SECONDS - 15)
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    async with running(cache):
        waiter = asyncio.create_task(cache.wait_synced())
        await asyncio.sleep(10 * SYNC_SECONDS)
        assert not waiter.done()
        server.outage = None
        server.bookmark_seconds = 30
        await waiter
        assert cache.unsynced() == {}


async def test_a_kind_that_came_should_have_its_time_and_no_more() -> None:
    server = ModelServer(outage=api_error(404, "NotFound"))
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    async with running(cache):
        waiter = asyncio.create_task(cache.wait_synced())
        await asyncio.sleep(1000)
        server.outage = api_error(500, "InternalError")
        await asyncio.sleep(SYNC_SECONDS - 15)
        assert not waiter.done()
        await asyncio.sleep(30)
        with pytest.raises(SyncTimeout):
            await waiter


@pytest.mark.parametrize(
    "outage", [ConnectFailed("refused", refused=True), RequestTimeout("no answer"), CredentialsFailed("no token yet")]
)
async def test_a_server_that_cannot_be_reached_should_be_waited_for_without_limit(outage: TransportError) -> None:
    server, registry = ModelServer(outage=outage), CollectorRegistry()
    cache = build_cache(server, registry=registry)
    cache.register(WIDGET_VIEW)
    labels = {"name": "widgets.example.com"}
    async with running(cache):
        waiter = asyncio.create_task(cache.wait_synced())
        await asyncio.sleep(10 * SYNC_SECONDS)
        assert not waiter.done()
        assert cache.unsynced() == {"widgets.example.com": f"{type(outage).__name__}: {outage}"}
        assert registry.get_sample_value("reflector_unreachable", labels) == 1
        server.outage = None
        await waiter
        assert registry.get_sample_value("reflector_unreachable", labels) == 0


class HungServer(ModelServer):
    """Takes connections, and never says anything."""

    async def list_page(self, *_: object, **__: object) -> NoReturn:
        await asyncio.sleep(60)
        raise RequestTimeout("no answer after 60 s")

    @contextlib.asynccontextmanager
    async def watch(self, *_: object, **__: object) -> AsyncIterator[AsyncIterator[bytes]]:
        yield await self.list_page()


async def test_a_server_that_never_answers_should_count_as_one_that_cannot_be_reached() -> None:
    cache = build_cache(HungServer())
    cache.register(WIDGET_VIEW)
    async with running(cache):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(10 * SYNC_SECONDS):
                await cache.wait_synced()


async def test_a_server_that_came_back_should_have_its_time_and_no_more(virtual_clock: VirtualClock) -> None:
    server = ModelServer(outage=ConnectFailed("refused", refused=True))
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    async with running(cache):
        waiter = asyncio.create_task(cache.wait_synced())
        await asyncio.sleep(1000)
        server.outage = api_error(403, "Forbidden")
        await asyncio.sleep(SYNC_SECONDS / 2)
        assert not waiter.done()
        with pytest.raises(SyncTimeout, match="Forbidden"):
            await waiter
    # The last failure to reach it was up to one backoff before it came back.
    assert virtual_clock.monotonic() <= 1000 + SYNC_SECONDS


async def test_the_version_of_a_resource_should_be_that_of_its_slowest_cache() -> None:
    server = ModelServer()
    cache = build_cache(server)
    assert cache.resource_version_of(WIDGETS) == ""
    plain, labelled = cache.register(WIDGET_VIEW), cache.register(LABELLED_VIEW)
    assert cache.resource_version_of(WIDGETS) == ""
    async with running(cache):
        await cache.wait_synced()
        assert cache.resource_version_of(WIDGETS) == "100"
        server.create("a")
        await settle()
        assert (plain.store.resource_version, labelled.store.resource_version) == ("101", "100")
        assert cache.resource_version_of(WIDGETS) == "100"
        server.bookmark()
        await settle()
        assert cache.resource_version_of(WIDGETS) == "101"


async def test_a_view_of_a_single_object_should_hold_nobody_up() -> None:
    server = ModelServer()
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    # The server of this test knows no selectors by fields; a label does what matters here: it hears of nothing else.
    single = cache.register(View(WIDGETS, CachedObject, selectors=Selectors("app=x", "metadata.name=other")))
    async with running(cache):
        await cache.wait_synced()
        server.create("a")
        await settle()
        assert single.store.resource_version == "100"
        assert cache.resource_version_of(WIDGETS) == "101"


async def test_ones_own_writes_should_be_seen_or_settled_by_a_new_list(virtual_clock: VirtualClock) -> None:
    server, registry = ModelServer(), CollectorRegistry()
    written = WrittenVersions(registry, [WIDGETS])
    metrics = CacheMetrics(registry, virtual_clock)
    cache = Cache(server, clock=virtual_clock, random=Random(0), metrics=metrics, written=written)
    cache.register(WIDGET_VIEW)
    cache.register(LABELLED_VIEW)
    async with running(cache):
        await asyncio.sleep(5)
        backup = server.snapshot()
        server.create("a")
        written.record(OWNER, "uid", WIDGETS, "101")
        assert written.stale(OWNER, "uid", cache.resource_version_of) == WIDGETS
        await settle()
        assert written.stale(OWNER, "uid", cache.resource_version_of) == WIDGETS, "one of the caches has not heard"
        server.bookmark()
        await settle()
        assert written.stale(OWNER, "uid", cache.resource_version_of) is None
        written.record(OWNER, "uid", WIDGETS, "102")
        server.restore(backup)
        await asyncio.sleep(79)
        assert written.stale(OWNER, "uid", cache.resource_version_of) == WIDGETS
        await asyncio.sleep(11)
        assert written.stale(OWNER, "uid", cache.resource_version_of) is None
        assert len(written) == 0


async def test_ones_own_writes_should_not_be_waited_for_where_the_kind_is_gone(virtual_clock: VirtualClock) -> None:
    server, registry = ModelServer(), CollectorRegistry()
    written = WrittenVersions(registry, [WIDGETS])
    metrics = CacheMetrics(registry, virtual_clock)
    cache = Cache(server, clock=virtual_clock, random=Random(0), metrics=metrics, written=written)
    informer = cache.register(OPTIONAL_VIEW)
    async with running(cache):
        await asyncio.sleep(5)
        server.cut()
        server.create("a")
        written.record(OWNER, "uid", WIDGETS, "101")
        server.outage = api_error(404, "NotFound")
        await asyncio.sleep(ABSENT_GRACE_SECONDS - 1)
        assert is_absent(informer)
        assert written.stale(OWNER, "uid", cache.resource_version_of) == WIDGETS, "the server may just be starting"
        await asyncio.sleep(15)
        assert written.stale(OWNER, "uid", cache.resource_version_of) is None
        server.outage = None
        await asyncio.sleep(15)
        assert cache.resource_version_of(WIDGETS) == "101"


async def test_a_server_that_starts_should_not_make_a_kind_count_as_gone(virtual_clock: VirtualClock) -> None:
    server = ModelServer()
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    async with running(cache):
        await asyncio.sleep(5)
        for _ in range(5):
            server.outage = api_error(404, "NotFound")
            server.cut()
            await asyncio.sleep(ABSENT_GRACE_SECONDS / 2)
            assert cache.resource_version_of(WIDGETS) == "100"
            server.outage = None
            await asyncio.sleep(15)


async def test_a_list_that_need_not_be_the_newest_should_settle_nothing(virtual_clock: VirtualClock) -> None:
    server, registry = ModelServer(), CollectorRegistry()
    written = WrittenVersions(registry, [WIDGETS])
    metrics = CacheMetrics(registry, virtual_clock)
    cache = Cache(server, clock=virtual_clock, random=Random(0), metrics=metrics, written=written)
    cache.register(WIDGET_VIEW)
    async with running(cache):
        await asyncio.sleep(5)
        written.record(OWNER, "uid", WIDGETS, "5000")
        server.take()
        server.send_error(410, "Expired")
        await asyncio.sleep(5)
        assert server.take() == ["state 100"]
        assert written.stale(OWNER, "uid", cache.resource_version_of) == WIDGETS


async def test_a_list_of_one_view_should_not_settle_what_another_has_yet_to_see(virtual_clock: VirtualClock) -> None:
    server, registry = ModelServer(), CollectorRegistry()
    written = WrittenVersions(registry, [WIDGETS])
    metrics = CacheMetrics(registry, virtual_clock)
    cache = Cache(server, clock=virtual_clock, random=Random(0), metrics=metrics, written=written)
    first, second = cache.register(WIDGET_VIEW), cache.register(LABELLED_VIEW)
    async with running(cache):
        await cache.wait_synced()
        written.record(OWNER, "uid", WIDGETS, "5000")
        assert first.relist_mark == second.relist_mark == 0
        for number, stream in enumerate(list(server.streams), 1):
            server.refusals["watch"].extend([api_error(410, "Expired")] * 2)
            stream.end()
            await asyncio.sleep(5)
            assert len(written) == (1 if number == 1 else 0)


async def test_an_informer_that_dies_should_end_the_cache() -> None:
    server = ModelServer()
    cache = build_cache(server)
    cache.register(WIDGET_VIEW)
    server.outage = ZeroDivisionError("a bug")
    with pytest.raises(BaseExceptionGroup) as caught:
        await cache.run()
    assert caught.value.subgroup(ZeroDivisionError) is not None


def cancelled(*_: object) -> NoReturn:
    """Stands for waiting for something that others have cancelled."""
    raise asyncio.CancelledError


class CancelledHandler:
    on_add = on_update = on_delete = staticmethod(cancelled)


class CancelledDice(Random):
    random = staticmethod(cancelled)
    getrandbits = Random.getrandbits  # the reflector's, which shall not suffer


@pytest.mark.parametrize("part", ["reflector", "processor", "resync"])
async def test_a_part_of_an_informer_that_is_cancelled_from_within_should_end_the_cache(
    virtual_clock: VirtualClock, part: str
) -> None:
    server, registry = ModelServer(), CollectorRegistry()
    server.create("a")
    random = CancelledDice() if part == "resync" else Random(0)
    metrics, written = CacheMetrics(registry, virtual_clock), WrittenVersions(registry, ())
    cache = Cache(server, clock=virtual_clock, random=random, metrics=metrics, written=written)
    informer = cache.register(View(WIDGETS, CachedObject, transform=cancelled if part == "reflector" else None))
    if part == "processor":
        informer.add_handler(CancelledHandler())
    with pytest.raises(BaseExceptionGroup) as caught:
        async with asyncio.timeout(60):
            await cache.run()
    assert caught.value.subgroup(InterruptedError) is not None
