import asyncio
from pathlib import Path

import pytest

from ktrainer.client.errors import (
    ConnectFailed,
    ConnectionLost,
    RequestTimeout,
    StreamBroken,
    StreamExpired,
    StreamIdle,
)
from ktrainer.client.transport.aiohttptransport import LOOK_SECONDS, OPEN_SECONDS, AiohttpTransport
from ktrainer.client.transport.transport import Request
from support.clients import authority, server_tls, transport_to
from support.scriptedserver import CHUNKED, Action, Pause, Script, ScriptedServer, answer, chunk, head
from support.virtualtime import VirtualClock, settle


class Reading:
    """What came of a stream, also of one that broke."""

    def __init__(self) -> None:
        self.body = b""
        self.status = 0

    async def all_of(
        self, transport: AiohttpTransport, *, seconds: float | None = None, idle: float | None = None
    ) -> None:
        request = Request("GET", "/w", {"Accept-Encoding": "identity"}, None, seconds)
        async with transport.stream(request, idle_seconds=idle) as stream:
            self.status = stream.status
            async for each in stream.chunks():
                self.body += each


async def test_a_stream_should_give_what_comes_when_it_comes(
    server: ScriptedServer, transport: AiohttpTransport, virtual_clock: VirtualClock
) -> None:
    server.will((CHUNKED, chunk(b"one\n"), Pause(10), chunk(b"two"), chunk(b"\n"), chunk(b"")), answer(200, b"plain"))
    request = Request("GET", "/w?watch=true", {"Accept-Encoding": "identity"}, None, 300)
    async with transport.stream(request, idle_seconds=80) as stream:
        assert stream.status == 200
        assert stream.headers["transfer-encoding"] == "chunked"
        chunks = stream.chunks()
        assert await anext(chunks) == b"one\n"
        assert virtual_clock.monotonic() == 0
        rest = b"".join([each async for each in chunks])
    assert (rest, virtual_clock.monotonic()) == (b"two\n", 10)
    assert server.requests[0].headers["accept-encoding"] == "identity"
    reading = Reading()
    await reading.all_of(transport)
    assert reading.body == b"plain"
    assert server.requests[1].connection == 1


@pytest.mark.parametrize(
    "script",
    [
        pytest.param((Action.CLOSE,), id="between chunks"),
        pytest.param((Action.RESET,), id="by a reset"),
        pytest.param((chunk(b"{}\n")[:2], Action.CLOSE), id="within the header of a chunk"),
        pytest.param((chunk("é\n".encode())[:4], Action.CLOSE), id="within a character"),
    ],
)
async def test_a_stream_that_is_cut_off_should_say_so(
    server: ScriptedServer, transport: AiohttpTransport, script: Script
) -> None:
    server.will((CHUNKED, chunk(b'{"good": 1}\n'), Pause(1), *script))
    reading = Reading()
    with pytest.raises(StreamBroken) as caught:
        await reading.all_of(transport, seconds=300, idle=80)
    assert type(caught.value) is StreamBroken
    assert reading.body.startswith(b'{"good": 1}\n')


async def test_a_silent_stream_should_be_given_up(
    server: ScriptedServer, transport: AiohttpTransport, virtual_clock: VirtualClock
) -> None:
    server.will((CHUNKED, chunk(b"1\n"), Pause(70), chunk(b"2\n"), Action.HANG))
    reading = Reading()
    with pytest.raises(StreamIdle):
        await reading.all_of(transport, seconds=600, idle=80)
    assert reading.body == b"1\n2\n"
    assert virtual_clock.monotonic() == 150


async def test_a_stream_that_is_not_read_should_not_be_taken_for_silent(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((CHUNKED, chunk(b"x" * 4_000_000), Pause(70), chunk(b"")))
    request = Request("GET", "/w", {}, None, 600)
    async with transport.stream(request, idle_seconds=80) as stream:
        chunks = stream.chunks()
        length = len(await anext(chunks))
        await asyncio.sleep(190)
        length += sum([len(each) async for each in chunks])
    assert length == 4_000_000


async def test_a_stream_without_end_should_be_ended(
    server: ScriptedServer, transport: AiohttpTransport, virtual_clock: VirtualClock
) -> None:
    server.will((CHUNKED, *(step for _ in range(100) for step in (chunk(b"1\n"), Pause(10)))))
    reading = Reading()
    with pytest.raises(StreamExpired):
        await reading.all_of(transport, seconds=330, idle=80)
    assert virtual_clock.monotonic() == 330
    assert len(reading.body) == 33 * 2


async def test_a_stream_that_never_begins_should_be_given_up(
    server: ScriptedServer, transport: AiohttpTransport, virtual_clock: VirtualClock
) -> None:
    server.will((Action.HANG,))
    with pytest.raises(RequestTimeout):
        await Reading().all_of(transport)
    assert virtual_clock.monotonic() == OPEN_SECONDS


async def test_a_connection_that_ends_before_the_headers_should_be_lost(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((Action.CLOSE,))
    with pytest.raises(ConnectionLost):
        await Reading().all_of(transport)


async def test_a_refused_stream_should_have_its_body(server: ScriptedServer, transport: AiohttpTransport) -> None:
    server.will(answer(410, b"gone"))
    reading = Reading()
    await reading.all_of(transport, idle=80)
    assert (reading.status, reading.body) == (410, b"gone")


async def test_leaving_a_stream_should_close_its_connection(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((CHUNKED, chunk(b"1\n"), Action.HANG), answer())
    async with transport.stream(Request("GET", "/w", {}, None, None), idle_seconds=None) as stream:
        await anext(stream.chunks())
    await settle()
    await transport.request(Request("GET", "/x", {}, None, 10))
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_cancelling_a_stream_should_close_its_connection(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((CHUNKED, Action.HANG), answer())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(7):
            await Reading().all_of(transport, idle=80, seconds=300)
    await transport.request(Request("GET", "/x", {}, None, 10))
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_closing_the_transport_should_break_its_streams(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((CHUNKED, Action.HANG))

    async def read() -> None:
        with pytest.raises(StreamBroken):
            await Reading().all_of(transport)

    async with asyncio.timeout(7), asyncio.TaskGroup() as group:
        group.create_task(read())
        await settle()
        await transport.close()


@pytest.mark.parametrize("idle", [80, None])
async def test_a_stream_of_nonsense_should_be_given_up_within_seconds(
    server: ScriptedServer, transport: AiohttpTransport, virtual_clock: VirtualClock, idle: float | None
) -> None:
    server.will((CHUNKED, chunk(b"1\n"), Pause(31), b"zz\r\n", Action.HANG))
    reading = Reading()
    with pytest.raises(StreamBroken) as caught:
        await reading.all_of(transport, seconds=600, idle=idle)
    assert type(caught.value) is StreamBroken
    assert reading.body == b"1\n"
    assert virtual_clock.monotonic() <= 31 + 2 * LOOK_SECONDS


async def test_a_stream_that_turns_to_nonsense_while_nobody_reads_should_be_broken(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((CHUNKED, chunk(b"1\n"), Pause(1), b"zz\r\n", Action.HANG))
    async with transport.stream(Request("GET", "/w", {}, None, 300), idle_seconds=80) as stream:
        assert await anext(stream.chunks()) == b"1\n"
        await asyncio.sleep(5)
        with pytest.raises(StreamBroken):
            await anext(stream.chunks())


async def test_a_stream_from_nowhere_should_be_no_connection(virtual_clock: VirtualClock) -> None:
    async with transport_to("http://127.0.0.1:1", virtual_clock) as transport:
        with pytest.raises(ConnectFailed) as caught:
            await Reading().all_of(transport)
    assert caught.value.refused


async def test_a_stream_should_end_with_the_connection_where_the_server_gives_no_length(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((head(200), b"all ", Pause(3 * LOOK_SECONDS), b"of it", Pause(LOOK_SECONDS), Action.CLOSE))
    reading = Reading()
    await reading.all_of(transport)
    assert reading.body == b"all of it"


async def test_a_stream_of_nonsense_should_be_given_up_although_its_peer_does_not_take_leave(
    virtual_clock: VirtualClock, tmp_path: Path
) -> None:
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        assert isinstance(writer.transport, asyncio.Transport)
        writer.transport.pause_reading()
        writer.write(CHUNKED + chunk(b"1\n"))
        await asyncio.sleep(1)
        writer.write(b"zz\r\n")
        await gone.wait()
        writer.transport.abort()

    gone = asyncio.Event()
    tls = server_tls(tmp_path, authority().issue("server"))
    peer = await asyncio.start_server(babble, "127.0.0.1", 0, ssl=tls)
    url = f"https://127.0.0.1:{peer.sockets[0].getsockname()[1]}"
    async with transport_to(url, virtual_clock) as transport:
        with pytest.raises(StreamBroken):
            await Reading().all_of(transport, seconds=600)
        assert virtual_clock.monotonic() <= 1 + 2 * LOOK_SECONDS
    gone.set()
    peer.close()
    await peer.wait_closed()
