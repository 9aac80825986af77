import asyncio
import socket

import psutil
import pytest

from ktrainer.client.errors import ConnectFailed, ConnectionLost, NotHttp, RequestTimeout, TransportError
from ktrainer.client.transport.aiohttptransport import AiohttpTransport
from ktrainer.client.transport.sockets import OPTIONS
from ktrainer.client.transport.transport import Request
from support.clients import transport_to
from support.scriptedserver import CHUNKED, Action, Pause, Script, ScriptedServer, answer, chunk, head, serving
from support.virtualtime import VirtualClock, settle


def get(path: str = "/x", seconds: float | None = 60.0) -> Request:
    return Request("GET", path, {"Accept": "application/json"}, None, seconds)


def post(body: bytes = b"{}", seconds: float | None = 60.0, method: str = "POST") -> Request:
    return Request(method, "/x", {"Content-Type": "application/json"}, body, seconds)


async def test_a_request_should_arrive_as_it_is(server: ScriptedServer, transport: AiohttpTransport) -> None:
    server.will(answer(201, b"made", [("Warning", '299 - "a"'), ("Warning", '299 - "b"')]))
    response = await transport.request(
        Request("POST", "/api/v1/x?name=a%2Fb&c=%20", {"Content-Type": "application/json"}, b'{"a": 1}', 10)
    )
    assert (response.status, response.body) == (201, b"made")
    assert response.headers["content-length"] == "4"
    assert [value for name, value in response.headers.items() if name == "Warning"] == ['299 - "a"', '299 - "b"']
    [seen] = server.requests
    assert (seen.method, seen.path, seen.body) == ("POST", "/api/v1/x?name=a%2Fb&c=%20", b'{"a": 1}')
    assert seen.headers == {
        "host": f"127.0.0.1:{server.port}",
        "content-type": "application/json",
        "content-length": "8",
        "user-agent": "test",
        "accept-encoding": "identity",
        "accept": "*/*",
    }


async def test_a_connection_should_be_used_again(server: ScriptedServer, transport: AiohttpTransport) -> None:
    server.will(answer(), answer(404), answer())
    for _ in range(3):
        await transport.request(get())
    assert [seen.connection for seen in server.requests] == [1, 1, 1]


async def test_requests_should_have_their_turns_in_the_order_of_their_arrival(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will(*[answer()] * 41)

    async def ask(path: str, times: int) -> None:
        for _ in range(times):
            await transport.request(get(path))

    async with asyncio.TaskGroup() as tasks:
        for _ in range(4):  # as many as may be under way
            tasks.create_task(ask("/again", 10))
        tasks.create_task(ask("/once", 1))
    paths = [seen.path for seen in server.requests]
    assert len(paths) == 41
    assert paths.index("/once") <= 8


async def test_reset_should_leave_idle_connections_alone(server: ScriptedServer, transport: AiohttpTransport) -> None:
    server.will(answer(), answer())
    await transport.request(get())
    transport.reset()
    await transport.request(get())
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_every_connection_should_notice_a_dead_peer(server: ScriptedServer, transport: AiohttpTransport) -> None:
    server.will((answer(), Action.HANG))
    await transport.request(get())
    assert options_of_connections_to(server.port) == [{name: value for _, name, value in OPTIONS}]


def options_of_connections_to(port: int) -> list[dict[str, int]]:
    """The options of this process' sockets that are connected to a port."""
    result = []
    for connection in psutil.Process().net_connections("tcp"):
        if tuple(connection.raddr)[1:] == (port,):
            sock = socket.socket(fileno=connection.fd)
            try:
                result.append(
                    {name: sock.getsockopt(getattr(socket, level), getattr(socket, name)) for level, name, _ in OPTIONS}
                )
            finally:
                sock.detach()
    return result


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "POST"])
@pytest.mark.parametrize("end", [Action.CLOSE, Action.RESET])
async def test_no_request_should_be_repeated_behind_our_back(
    server: ScriptedServer, transport: AiohttpTransport, method: str, end: Action
) -> None:
    server.will((end,), (end,))
    with pytest.raises(ConnectionLost) as caught:
        await transport.request(post(method=method))
    assert (caught.value.sent, caught.value.reused) == (True, False)
    assert len(server.requests) == 1


@pytest.mark.parametrize("end", [Action.CLOSE, Action.RESET])
async def test_a_lost_connection_that_was_used_before_should_be_told_apart(
    server: ScriptedServer, transport: AiohttpTransport, end: Action
) -> None:
    server.will(answer(), (end,), answer())
    await transport.request(get())
    with pytest.raises(ConnectionLost) as caught:
        await transport.request(get())
    assert caught.value.reused
    assert [seen.connection for seen in server.requests] == [1, 1]
    await transport.request(get())
    assert server.requests[-1].connection == 2


async def test_a_connection_that_was_closed_while_idle_should_not_be_used(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((answer(), Action.CLOSE), answer())
    await transport.request(get())
    await settle()
    await transport.request(post())
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_a_connection_that_ends_before_the_request_should_be_lost(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.greetings.append(Action.RESET)
    with pytest.raises(ConnectionLost) as caught:
        await transport.request(get())
    assert not caught.value.reused
    assert not server.requests


async def test_a_refused_connection_should_be_told_apart(virtual_clock: VirtualClock) -> None:
    async with serving() as server:
        url = server.url
    async with transport_to(url, virtual_clock) as transport:
        with pytest.raises(ConnectFailed) as caught:
            await transport.request(get())
    assert caught.value.refused


async def test_an_unknown_host_should_be_no_connection(virtual_clock: VirtualClock) -> None:
    async with transport_to("http://no-such-host.invalid", virtual_clock) as transport:
        with pytest.raises(ConnectFailed) as caught:
            await transport.request(get())
    assert not caught.value.refused


async def test_a_host_that_does_not_answer_should_be_no_connection_after_ten_seconds(
    virtual_clock: VirtualClock,
) -> None:
    # A listener whose queue is full lets the kernel drop further attempts, like a firewall.
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(3)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        async with transport_to(f"http://127.0.0.1:{listener.getsockname()[1]}", virtual_clock) as transport:
            with pytest.raises(ConnectFailed, match="in time"):
                await transport.request(get())
        assert 10 <= virtual_clock.monotonic() <= 11
        for filler in fillers:
            filler.close()


@pytest.mark.parametrize(
    "script",
    [
        pytest.param((Pause(61), answer()), id="before the headers"),
        pytest.param((head(200, [("Content-Length", "2")]), b"{", Pause(61), b"}"), id="within the body"),
        pytest.param((Action.HANG,), id="never"),
    ],
)
async def test_a_slow_answer_should_be_given_up(
    server: ScriptedServer, transport: AiohttpTransport, virtual_clock: VirtualClock, script: Script
) -> None:
    server.will(script)
    with pytest.raises(RequestTimeout):
        await transport.request(get(seconds=60))
    assert virtual_clock.monotonic() == 60


async def test_waiting_for_a_free_connection_should_count(
    server: ScriptedServer, transport: AiohttpTransport, virtual_clock: VirtualClock
) -> None:
    server.responder = lambda _: (Pause(20), answer())
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(transport.request(get()))
        await settle()
        with pytest.raises(RequestTimeout):
            await transport.request(post(seconds=5))
        assert virtual_clock.monotonic() == 5
    assert len(server.requests) == 4


async def test_a_cancelled_request_should_close_its_connection(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((Pause(5), answer()), answer())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await transport.request(get())
    await transport.request(get())
    assert [seen.connection for seen in server.requests] == [1, 2]


async def test_a_body_that_is_cut_off_should_be_a_lost_connection(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    for script in (
        (head(200, [("Content-Length", "10")]), b"12345", Action.CLOSE),
        (CHUNKED, chunk(b"12345")[:-4], Action.CLOSE),
        (CHUNKED, chunk(b"12345"), b"1", Action.CLOSE),
        (CHUNKED, chunk(b"12345"), Action.RESET),
        (head(200, [("Content-Length", "10")])[:20], Action.CLOSE),
    ):
        server.will(script)
        with pytest.raises(ConnectionLost):
            await transport.request(get())


async def test_a_body_that_turns_to_nonsense_should_be_no_answer(
    server: ScriptedServer, transport: AiohttpTransport
) -> None:
    server.will((CHUNKED, chunk(b"12345"), Pause(1), b"zz\r\n", Action.HANG))
    with pytest.raises(TransportError):
        await transport.request(get())


async def test_what_is_not_http_should_be_said_so(server: ScriptedServer, transport: AiohttpTransport) -> None:
    server.will((b"SSH-2.0-OpenSSH_9.2\r\n\r\n", Action.CLOSE))
    with pytest.raises(NotHttp) as caught:
        await transport.request(get())
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("status", [301, 307, 308])
async def test_redirects_should_not_be_followed(
    server: ScriptedServer, transport: AiohttpTransport, status: int
) -> None:
    server.will(answer(status, b"", [("Location", "/elsewhere")]))
    assert (await transport.request(get())).status == status
    assert len(server.requests) == 1


async def test_empty_and_missing_bodies_should_be_empty(server: ScriptedServer, transport: AiohttpTransport) -> None:
    server.will(answer(200, b""), head(204), (head(200), Action.CLOSE))
    assert [(await transport.request(get())).body for _ in range(3)] == [b"", b"", b""]


async def test_a_large_body_should_arrive_whole(server: ScriptedServer, transport: AiohttpTransport) -> None:
    body = bytes(range(256)) * 12_288
    server.will(answer(200, body))
    assert (await transport.request(post(body))).body == body
    assert server.requests[0].body == body


async def test_cookies_should_not_be_kept(server: ScriptedServer, virtual_clock: VirtualClock) -> None:
    server.will(answer(200, b"", [("Set-Cookie", "a=b")]), answer())
    async with transport_to(f"http://localhost:{server.port}", virtual_clock) as transport:
        for _ in range(2):
            await transport.request(get())
    assert "cookie" not in server.requests[1].headers


async def test_a_closed_transport_should_refuse(server: ScriptedServer, transport: AiohttpTransport) -> None:
    await transport.close()
    with pytest.raises(ConnectFailed, match="closed"):
        await transport.request(get())
