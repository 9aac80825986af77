"""What an informer makes of a server that says nothing."""

import asyncio

import pytest
from structlog.testing import capture_logs

from ktrainer.machinery.cache.reflector.reflector import IDLE_SECONDS
from support.informers import contents_of, contents_of_server, informing, warnings_of
from support.modelevents import api_error
from support.modelserver import GRACE_SECONDS, InitialEvents, ModelServer
from support.virtualtime import settle


async def test_a_dead_peer_should_be_noticed_and_the_watch_resumed() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (informer, _):
        await asyncio.sleep(125)
        server.take()
        server.freeze()
        server.update(key)
        await asyncio.sleep(80)
        assert server.take() == ["watch 101"]
        assert contents_of(informer.store) == contents_of_server(server)


async def test_a_server_without_bookmarks_should_not_be_taken_for_dead() -> None:
    server = ModelServer(bookmark_seconds=None)
    server.create("a")
    async with informing(server):
        await asyncio.sleep(2000)
        idles = [asked.idle_seconds for asked in server.asked if asked.verb == "watch"]
        assert idles[:4] == [IDLE_SECONDS, IDLE_SECONDS, IDLE_SECONDS, None]
        assert set(idles[4:]) == {None}
        server.bookmark()
        server.cut()
        await settle()
        assert server.asked[-1].idle_seconds == IDLE_SECONDS


async def test_a_watch_should_end_even_if_the_server_does_not_end_it() -> None:
    server = ModelServer(bookmark_seconds=None)
    async with informing(server):
        await asyncio.sleep(1000)
        server.freeze()
        before = server.asked[-1]
        await asyncio.sleep(700)
        after = next(asked for asked in server.asked if asked.verb == "watch" and asked.at > before.at)
        assert after.at == before.at + before.timeout_seconds + GRACE_SECONDS


@pytest.mark.parametrize("initial_events", [InitialEvents.SERVED, InitialEvents.INVALID])
async def test_a_server_that_was_restored_should_be_listed_anew(initial_events: InitialEvents) -> None:
    server = ModelServer(initial_events=initial_events)
    server.create("a")
    backup = server.snapshot()
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(5)
        server.delete(server.create("b"))
        server.create("c")
        await asyncio.sleep(5)
        recorder.take()
        server.take()
        with capture_logs() as logs:
            server.restore(backup)
            await asyncio.sleep(90)
        assert contents_of(informer.store) == contents_of_server(server)
        assert informer.store.resource_version == "101"
        assert sorted(recorder.take()) == [("sync", "default/a"), ("tombstone", "default/c")]
        refill = ["state"] if initial_events is InitialEvents.SERVED else ["state", "list", "watch 101"]
        assert server.take() == ["watch 104", "probe", *refill]
        assert warnings_of(logs) == ["the server went back to an older state"]
        server.create("d")
        await settle()
        assert recorder.take() == [("add", "default/d")]


async def test_a_version_that_the_server_has_yet_to_reach_should_be_given_up_at_once() -> None:
    server = ModelServer()
    server.create("a")
    backup = server.snapshot()
    async with informing(server) as (informer, _):
        await asyncio.sleep(5)
        server.create("b")
        await settle()
        server.take()
        server.restore(backup)
        for stream in server.streams:
            stream.end()
        await settle()
        server.send_error(500, "InternalError")
        await asyncio.sleep(3)
        assert server.take()[-2:] == ["state 102", "state"]
        assert contents_of(informer.store) == contents_of_server(server)


@pytest.mark.parametrize("trouble", ["refused", "hanging"])
async def test_a_server_whose_version_cannot_be_told_should_be_watched_on(trouble: str) -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server):
        await asyncio.sleep(5)
        server.cut()
        await settle()
        server.freeze()
        if trouble == "refused":
            server.refusals["list"].append(api_error(503, "ServiceUnavailable"))
        else:
            server.page_seconds = 60
        server.take()
        await asyncio.sleep(IDLE_SECONDS + 5.1)
        assert server.take() == ["probe", "watch 101"]
