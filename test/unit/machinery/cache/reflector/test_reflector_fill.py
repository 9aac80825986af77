"""How an informer gets hold of the first state, and of every later one."""

import asyncio

import pytest
from structlog.testing import capture_logs

from ktrainer.client.errors import ConnectFailed
from support.informers import contents_of, contents_of_server, informing, is_synced, warnings_of
from support.modelevents import api_error
from support.modelserver import InitialEvents, ModelServer
from support.virtualtime import VirtualClock, settle


async def test_the_first_state_should_come_by_the_stream_that_then_goes_on() -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server) as (informer, recorder):
        await informer.wait_synced()
        server.create("b")
        await settle()
        assert recorder.take() == [("initial", "default/a"), ("add", "default/b")]
        assert server.take() == ["state"]


async def test_nothing_should_be_synced_before_the_state_is_complete() -> None:
    server = ModelServer(end_bookmark_seconds=45)
    key = server.create("a")
    with capture_logs() as logs:
        async with informing(server) as (informer, recorder):
            await asyncio.sleep(15)
            server.bookmark()
            server.update(key)
            server.create("b")
            server.delete(server.create("c"))
            await asyncio.sleep(29.9)
            assert not is_synced(informer)
            assert (len(informer.store), recorder.told) == (0, [])
            await asyncio.sleep(0.2)
            assert is_synced(informer)
            assert contents_of(informer.store) == contents_of_server(server)
            assert [what for what, _ in recorder.take()] == ["initial", "initial"]
            await asyncio.sleep(60)
    assert warnings_of(logs) == ["the initial state is not complete yet"] * 4
    assert server.take() == ["state"]


async def test_a_stream_that_is_cut_before_the_state_is_complete_should_leave_no_trace() -> None:
    server = ModelServer(end_bookmark_seconds=5)
    server.create("a")
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(1)
        server.delete(next(iter(server.objects)))
        server.create("b")
        server.cut()
        await settle()
        assert server.take() == ["state", "list", "watch 103"]
        assert recorder.take() == [("initial", "default/b")]
        assert contents_of(informer.store) == contents_of_server(server)


async def test_a_stream_that_is_begun_again_should_begin_with_nothing() -> None:
    server = ModelServer(end_bookmark_seconds=5)
    key = server.create("a")
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(1)
        server.send_error(429, "TooManyRequests")
        server.streams[0].is_frozen = True
        server.delete(key)
        server.create("b")
        await informer.wait_synced()
        assert server.take() == ["state", "state"]
        assert recorder.take() == [("initial", "default/b")]


@pytest.mark.parametrize("refusal", [InitialEvents.INVALID, InitialEvents.UNSUPPORTED])
async def test_a_server_without_initial_events_should_be_listed_at_once(refusal: InitialEvents) -> None:
    server = ModelServer(initial_events=refusal, items_have_kind=False)
    server.create("a")
    async with informing(server) as (informer, _):
        await settle()
        assert is_synced(informer)
        assert contents_of(informer.store) == contents_of_server(server)
        assert server.take() == ["state", "list", "watch 101"]


@pytest.mark.parametrize(
    "error", [ConnectFailed("refused", refused=True), api_error(429, "TooManyRequests")], ids=["refused", "busy"]
)
async def test_a_server_that_is_not_ready_should_be_asked_for_the_same_again(
    error: Exception, virtual_clock: VirtualClock
) -> None:
    server = ModelServer()
    server.refusals["watch"].extend([error] * 3)
    async with informing(server) as (informer, _):
        await informer.wait_synced()
        assert server.take() == ["state"] * 4
        assert 0.8 + 1.6 + 3.2 <= virtual_clock.monotonic() < 2 * (0.8 + 1.6 + 3.2)


async def test_a_wish_of_the_server_should_be_respected(virtual_clock: VirtualClock) -> None:
    server = ModelServer()
    server.refusals["watch"].append(api_error(429, "TooManyRequests", retry_after=25))
    async with informing(server) as (informer, _):
        await informer.wait_synced()
        assert virtual_clock.monotonic() == 25


async def test_a_wish_beyond_reason_should_not_be_respected(virtual_clock: VirtualClock) -> None:
    server = ModelServer()
    server.refusals["watch"].append(api_error(429, "TooManyRequests", retry_after=86_400))
    async with informing(server) as (informer, _):
        await informer.wait_synced()
        assert virtual_clock.monotonic() == 60


async def test_everything_should_be_listed_page_by_page_and_by_quorum() -> None:
    server = ModelServer(initial_events=InitialEvents.INVALID)
    for number in range(1201):
        server.create(f"w{number}")
    async with informing(server) as (informer, recorder):
        await informer.wait_synced()
        pages = [asked for asked in server.asked if asked.verb == "list"]
        assert [(page.limit, page.resource_version) for page in pages] == [(500, "")] * 3
        assert server.take() == ["state", "list", "page", "page", "watch 1301"]
        assert contents_of(informer.store) == contents_of_server(server)
        assert [name for _, name in recorder.take()] == [str(key) for key in sorted(server.objects)]


async def test_a_list_should_be_begun_again_when_its_pages_expire() -> None:
    server = ModelServer(initial_events=InitialEvents.INVALID, max_page=2, page_seconds=1)
    for name in "abcdefg":
        server.create(name)
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(2.5)
        assert server.take() == ["state", "list", "page", "page"]
        server.delete(next(iter(server.objects)))
        server.create("h")
        server.compact()
        await informer.wait_synced()
        assert server.take() == ["list", "page", "page", "page", "watch 109"]
        assert contents_of(informer.store) == contents_of_server(server)
        assert len(recorder.take()) == 7


async def test_a_list_whose_pages_always_expire_should_be_backed_off_from() -> None:
    server = ModelServer(initial_events=InitialEvents.INVALID, max_page=1, page_seconds=0.2)
    server.create("a")
    server.create("b")
    async with informing(server) as (informer, _):
        for _ in range(300):
            server.compact()
            await asyncio.sleep(0.2)
        assert 4 <= server.take().count("list") <= 14
        assert not is_synced(informer)
        await asyncio.sleep(60)
        assert contents_of(informer.store) == contents_of_server(server)


async def test_changes_between_pages_should_be_seen_by_the_watch() -> None:
    server = ModelServer(initial_events=InitialEvents.INVALID, max_page=2, page_seconds=1)
    keys = [server.create(name) for name in "abcdef"]
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(1.5)
        server.delete(keys[0])
        server.delete(keys[5])
        server.create("aa")
        await asyncio.sleep(2)
        assert contents_of(informer.store) == contents_of_server(server)
        assert recorder.take()[6:] == [("delete", "default/a"), ("delete", "default/f"), ("add", "default/aa")]


async def test_a_list_that_fails_should_leave_the_store_as_it_was() -> None:
    server = ModelServer(max_page=1)
    for name in "abc":
        server.create(name)
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(5)
        recorder.take()
        before = contents_of(informer.store)
        server.send_error(410, "Expired")
        await settle()
        for key in list(server.objects):
            server.delete(key)
        server.create("d")
        server.create("e")
        server.initial_events = InitialEvents.INVALID
        server.page_seconds = 1
        await asyncio.sleep(2.7)
        assert server.summary()[-2:] == ["list", "page"]
        server.refusals["list"].append(api_error(500, "InternalError"))
        await asyncio.sleep(1)
        assert not server.refusals["list"]
        assert contents_of(informer.store) == before
        assert recorder.told == []
        await asyncio.sleep(10)
        assert contents_of(informer.store) == contents_of_server(server)
