import asyncio
import contextlib
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from ktrainer.machinery.serving.address import Address
from ktrainer.machinery.serving.connections import DRAIN_SECONDS
from ktrainer.machinery.serving.httpserver import HttpServer
from support.httpserving import build_context, fetch, serving
from support.virtualtime import VirtualClock

LOCAL = Address("127.0.0.1", 0)


async def echo(request: web.BaseRequest) -> web.Response:
    return web.Response(text=f"{request.method} {request.path_qs}")


async def test_a_server_should_serve_its_handler() -> None:
    server = HttpServer("test", LOCAL, echo)
    assert server.name == "test"
    async with serving(server) as port:
        assert port != 0
        assert (await fetch(port, "/a?b=c"))[:2] == (200, "GET /a?b=c")


async def test_a_server_should_serve_over_tls(tmp_path: Path) -> None:
    async with serving(HttpServer("test", LOCAL, echo, context=build_context(tmp_path))) as port:
        assert (await fetch(port, "/", tls=True)).status == 200


async def test_an_address_without_host_should_be_everywhere() -> None:
    async with serving(HttpServer("test", Address(None, 0), echo)):
        pass
    async with serving(HttpServer("test", Address("127.0.0.1", 0), echo)) as port:
        with pytest.raises(OSError, match="address already in use"):
            await HttpServer("second", Address("127.0.0.1", port), echo).run()


async def test_a_server_that_stops_should_finish_what_is_under_way(virtual_clock: VirtualClock) -> None:
    entered = asyncio.Event()

    async def dawdle(request: web.BaseRequest) -> web.Response:
        entered.set()
        await asyncio.sleep(3)
        return web.Response(text="done")

    server = HttpServer("test", LOCAL, dawdle)
    task = asyncio.create_task(server.run())
    port = await server.wait_listening()
    request = asyncio.create_task(fetch(port, "/"))
    await entered.wait()
    task.cancel()
    assert (await request).text == "done"
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(OSError, match="Connect"):
        await fetch(port, "/")


async def test_a_server_that_is_asked_to_stop_should_serve_on_and_send_its_callers_away(
    virtual_clock: VirtualClock,
) -> None:
    server = HttpServer("test", LOCAL, echo)
    task = asyncio.create_task(server.run())
    port = await server.wait_listening()
    assert "Connection" not in (await fetch(port, "/")).headers
    server.stop()
    await asyncio.sleep(DRAIN_SECONDS - 0.1)
    answer = await fetch(port, "/")
    assert (answer.status, answer.headers["Connection"]) == (200, "close")
    await task
    assert virtual_clock.monotonic() == pytest.approx(DRAIN_SECONDS)
    with pytest.raises(OSError, match="Connect"):
        await fetch(port, "/")


async def test_a_handler_that_hangs_should_not_keep_the_server(virtual_clock: VirtualClock) -> None:
    async def hang(request: web.BaseRequest) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async with serving(HttpServer("test", LOCAL, hang)) as port:
        request = asyncio.create_task(fetch(port, "/"))
        await asyncio.sleep(1)
        began_at = virtual_clock.monotonic()
    assert virtual_clock.monotonic() - began_at < 10
    with pytest.raises(aiohttp.ClientError):
        await request


async def test_a_client_that_dawdles_over_its_request_should_be_dropped(virtual_clock: VirtualClock) -> None:
    async with serving(HttpServer("test", LOCAL, echo)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert virtual_clock.monotonic() <= 33
        writer.close()
