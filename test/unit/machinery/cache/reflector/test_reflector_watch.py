"""How an informer goes on when a watch has ended."""

import asyncio

import pytest
from structlog.testing import capture_logs

from ktrainer.client.errors import ConnectFailed, ConnectionLost, LineTooLong, RequestTimeout
from ktrainer.machinery.cache.reflector.reflector import IDLE_SECONDS
from support.informers import contents_of, contents_of_server, informing, warnings_of
from support.modelevents import api_error, line_of
from support.modelserver import ModelServer
from support.virtualtime import VirtualClock, settle


@pytest.mark.parametrize("ending", ["cut", "end"])
async def test_a_watch_that_ends_in_transport_should_resume_at_the_last_version(ending: str) -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(5)
        server.take()
        recorder.take()
        server.update(key)
        await settle()
        getattr(server, ending)()
        server.update(key)
        server.delete(key)
        await settle()
        assert server.take() == ["watch 102"]
        assert [what for what, _ in recorder.take()] == ["update", "update", "delete"]
        assert contents_of(informer.store) == {}


async def test_a_watch_should_resume_after_the_last_whole_line_wherever_it_is_cut() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(2)
        server.take()
        for cut_after in range(500):
            server.next_budget = cut_after
            server.cut()
            await asyncio.sleep(1.1)
            server.update(key)
            server.update(key)
            await settle()
            assert contents_of(informer.store) == contents_of_server(server)
        assert [what for what, _ in recorder.told] == ["initial"] + ["update"] * 1000
        assert all(each.startswith("watch") for each in server.take())


async def test_bookmarks_should_move_the_version_and_nothing_else() -> None:
    server = ModelServer()
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(5)
        server.take()
        server.revision += 50
        server.bookmark()
        await settle()
        assert (informer.store.resource_version, len(informer.store), recorder.told) == ("150", 0, [])
        server.cut()
        await settle()
        assert server.take() == ["watch 150"]


async def test_no_change_should_be_waited_with_when_a_watch_ends_as_it_should(virtual_clock: VirtualClock) -> None:
    server = ModelServer()
    async with informing(server):
        await asyncio.sleep(7200)
        watches = [asked for asked in server.asked if asked.verb == "watch"]
        assert server.take() == ["state"] + ["watch 100"] * (len(watches) - 1)
        assert all(300 <= asked.timeout_seconds < 600 for asked in watches)
        assert len({asked.timeout_seconds for asked in watches}) > 5
        ends = [asked.at + asked.timeout_seconds for asked in watches]
        assert [asked.at for asked in watches[1:]] == ends[:-1]


async def test_a_watch_that_ends_at_once_should_lead_to_a_new_list_after_a_while() -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server) as (_, recorder):
        await asyncio.sleep(5)
        server.cut()
        await asyncio.sleep(0.5)
        server.take()
        server.end()
        await settle()
        assert server.take() == []
        await asyncio.sleep(1.7)
        assert server.take() == ["state 101"]
        assert recorder.take()[1:] == [("sync", "default/a")]


@pytest.mark.parametrize("as_status", [True, False], ids=["as an answer", "in the stream"])
async def test_an_expired_version_should_lead_to_a_new_list_not_older_than_it(as_status: bool) -> None:
    server = ModelServer(gone_as_status=as_status)
    key, other = server.create("a"), server.create("b")
    with capture_logs() as logs:
        async with informing(server) as (informer, recorder):
            await asyncio.sleep(5)
            recorder.take()
            server.freeze()
            server.delete(key)
            server.update(other)
            server.create("c")
            server.compact()
            await asyncio.sleep(IDLE_SECONDS + 3)
            assert server.take() == ["state", "watch 102", "state 102"]
            told = [("tombstone", "default/a"), ("update", "default/b"), ("add", "default/c")]
            assert sorted(recorder.take()) == sorted(told)
            assert contents_of(informer.store) == contents_of_server(server)
    assert warnings_of(logs) == []


async def test_deletions_should_be_told_before_the_rest_of_a_new_list() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (_, recorder):
        await asyncio.sleep(5)
        server.freeze()
        server.create("0")
        server.delete(key)
        server.compact()
        await asyncio.sleep(IDLE_SECONDS + 3)
        assert recorder.take()[1:] == [("tombstone", "default/a"), ("add", "default/0")]


async def test_a_version_that_expired_twice_should_be_given_up() -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server):
        await asyncio.sleep(5)
        server.take()
        server.refusals["watch"].extend([api_error(410, "Expired")] * 2)
        server.cut()
        await asyncio.sleep(3)
        assert server.take() == ["watch 101", "state 101", "state"]


@pytest.mark.parametrize(
    "refusal",
    [
        api_error(429, "TooManyRequests"),
        ConnectFailed("refused", refused=True),
        ConnectFailed("no such host"),
        ConnectionLost("reset"),
        RequestTimeout("late"),
    ],
    ids=["busy", "refused", "unreachable", "lost", "late"],
)
async def test_a_watch_that_cannot_begin_should_be_tried_again_without_a_list(
    refusal: Exception, virtual_clock: VirtualClock
) -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (informer, _):
        await asyncio.sleep(5)
        server.take()
        server.refusals["watch"].extend([refusal] * 3)
        server.cut()
        await asyncio.sleep(0.7)
        assert server.take() == ["watch 101"]
        assert str(refusal) in (informer.last_error or "")
        server.update(key)
        await asyncio.sleep(15)
        assert server.take() == ["watch 101"] * 3
        assert contents_of(informer.store) == contents_of_server(server)
        assert informer.last_error is None


async def test_news_should_end_a_series_of_failures() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server):
        await asyncio.sleep(5)
        server.refusals["watch"].extend([ConnectFailed("refused", refused=True)] * 3)
        server.cut()
        await asyncio.sleep(15)
        server.update(key)
        await asyncio.sleep(5)
        server.refusals["watch"].append(ConnectFailed("refused", refused=True))
        server.take()
        server.cut()
        await asyncio.sleep(1.7)
        assert server.take() == ["watch 102"] * 2


async def test_an_overloaded_server_should_be_backed_off_from_in_place() -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server):
        await asyncio.sleep(5)
        server.take()
        server.send_error(429, "TooManyRequests")
        await asyncio.sleep(0.7)
        assert server.take() == []
        await asyncio.sleep(1)
        assert server.take() == ["watch 101"]


@pytest.mark.parametrize("code", [500, 503, 403])
async def test_any_other_error_in_the_stream_should_lead_to_a_new_list(code: int) -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server):
        await asyncio.sleep(5)
        server.take()
        server.send_error(code, "")
        await asyncio.sleep(0.7)
        assert server.take() == []
        await asyncio.sleep(1)
        assert server.take() == ["state 101"]


@pytest.mark.parametrize("line", [b"<html>", b'{"type":"ADDED"', line_of("RENAMED", {"metadata": {}})])
async def test_a_stream_that_makes_no_sense_should_lead_to_a_new_list(line: bytes) -> None:
    server = ModelServer()
    server.create("a")
    with capture_logs() as logs:
        async with informing(server) as (informer, recorder):
            await asyncio.sleep(5)
            server.take()
            server.send(line)
            server.create("b")
            await settle()
            assert len(informer.store) == 1
            await asyncio.sleep(1.7)
            assert server.take() == ["state 101"]
            assert contents_of(informer.store) == contents_of_server(server)
            assert sorted(recorder.take()[1:]) == [("add", "default/b"), ("sync", "default/a")]
    assert warnings_of(logs) == ["cannot list or watch; trying again"]


async def test_a_line_that_is_too_long_should_lead_to_a_new_list() -> None:
    server = ModelServer()
    server.create("a")
    async with informing(server):
        await asyncio.sleep(5)
        server.take()
        for stream in server.streams:
            stream.break_off(LineTooLong("8 MiB"))
        await asyncio.sleep(2)
        assert server.take() == ["state 101"]


async def test_an_object_of_another_kind_should_not_move_the_version() -> None:
    server = ModelServer()
    server.create("a")
    metadata = {"name": "t", "namespace": "default", "resourceVersion": "999"}
    with capture_logs() as logs:
        async with informing(server) as (informer, _):
            await asyncio.sleep(5)
            server.take()
            for _ in range(5):
                server.send(line_of("ADDED", {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}))
            server.cut()
            await settle()
            assert server.take() == ["watch 101"]
            assert contents_of(informer.store) == contents_of_server(server)
            assert informer.store.resource_version == "101"
    assert warnings_of(logs) == ["object is passed over"]


async def test_a_server_that_sends_a_bookmark_and_hangs_up_should_not_be_called_again_at_once() -> None:
    server = ModelServer()
    async with informing(server):
        await asyncio.sleep(5)
        server.take()
        server.cut()
        await settle()
        server.revision += 1
        server.bookmark()
        server.end()
        await asyncio.sleep(0.5)
        assert server.take() == ["watch 100"]
        await asyncio.sleep(2)
        assert server.take() == ["state 101"]
