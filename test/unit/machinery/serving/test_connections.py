from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Hook, allowed
from ktrainer.machinery.serving import connections
from ktrainer.machinery.serving.address import Address
from ktrainer.machinery.serving.connections import (
    HANDSHAKE_SECONDS,
    HEADER_SECONDS,
    KEEPALIVE_SECONDS,
    NEWCOMER_SECONDS,
)
from ktrainer.machinery.serving.httpserver import HttpServer
from support.admissionserver import served
from support.httpserving import fetch, serving
from support.httpspeer import Peer, head_of
from support.reviews import review
from support.virtualtime import settle


async def allow(request: AdmissionRequest) -> AdmissionResponse:
    return allowed()


async def echo(request: web.BaseRequest) -> web.Response:
    return web.Response(text=request.path)


HOOK = Hook("/hook", allow, is_mutating=False)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_an_idle_connection_should_outlive_the_callers_patience() -> None:
    async with served(HOOK) as webhook, webhook.connect() as peer:
        for _ in range(3):
            await asyncio.sleep(90)
            assert (await peer.post("/hook", review())).status == 200
        idle_since = now()
        assert await peer.is_closed()
        assert now() - idle_since == pytest.approx(KEEPALIVE_SECONDS)


async def test_a_connection_that_is_opened_ahead_should_be_kept_as_long_as_an_idle_one() -> None:
    async with served(HOOK) as webhook, webhook.connect() as peer:
        await asyncio.sleep(90)
        assert (await peer.post("/hook", review())).status == 200
    async with served(HOOK) as webhook, webhook.connect() as peer:
        opened_at = now()
        assert await peer.is_closed()
        assert now() - opened_at == pytest.approx(KEEPALIVE_SECONDS)


@pytest.mark.parametrize("has_asked_before", [False, True])
async def test_a_client_that_dawdles_over_a_head_should_be_dropped(has_asked_before: bool) -> None:
    async def drip() -> None:
        await peer.send(b"POST /hook HTTP/1.1\r\n")
        while True:
            await peer.send(b"X-A: b\r\n")
            await asyncio.sleep(1)

    async with served(HOOK) as webhook, webhook.connect() as peer:
        if has_asked_before:
            await peer.post("/hook", review())
        async with asyncio.TaskGroup() as group:
            dripping = group.create_task(drip())
            assert await peer.is_closed()
            dripping.cancel()
        assert now() == pytest.approx(HEADER_SECONDS)


async def test_a_slow_handler_should_not_be_taken_for_a_slow_head() -> None:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        await asyncio.sleep(20)
        return allowed()

    async with served(Hook("/slow", handle, is_mutating=False)) as webhook, webhook.connect() as peer:
        for _ in range(3):
            body = review()
            await peer.send(head_of("POST", "/slow?timeout=30s", len(body)))
            await asyncio.sleep(9)
            await peer.send(body)
            assert (await peer.receive()).status == 200


async def test_a_client_that_does_not_shake_hands_should_be_dropped() -> None:
    async with served(HOOK) as webhook:
        reader, writer = await asyncio.open_connection("127.0.0.1", webhook.port)
        assert await reader.read() == b""
        assert now() == pytest.approx(HANDSHAKE_SECONDS)
        writer.close()


@pytest.mark.parametrize(
    "head",
    [
        b"POST /hook HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
        b"POST /hook HTTP/1.1\r\n\r\n",
        b"POST http://a:secret/hook HTTP/1.1\r\nHost: a\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nHost: a\r\nX: " + b"secret" * 5000 + b"\r\n\r\n",
        b"POST /hook HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nsecret\r\n",
    ],
)
async def test_what_is_no_request_should_fill_no_log(head: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with served(HOOK) as webhook, webhook.connect() as peer:
        with capture_logs() as logs:
            await peer.send(head)
            assert (await peer.receive()).status == 400
        assert [(entry["event"], entry["log_level"]) for entry in logs] == [("not a request", "debug")]
        assert "secret" not in str(logs)
    assert not caplog.records


async def test_a_handler_that_fails_should_be_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(request: web.BaseRequest) -> web.Response:
        raise LookupError("bug")

    async with serving(HttpServer("test", Address("127.0.0.1", 0), fail)) as port:
        assert (await fetch(port, "/")).status == 500
    assert "LookupError: bug" in caplog.text


async def test_dawdlers_should_not_keep_others_from_being_served() -> None:
    async with served(HOOK) as webhook, AsyncExitStack() as stack:
        for _ in range(40):
            peer = await stack.enter_async_context(webhook.connect())
            await peer.send(b"POST /hook HTTP/1.1\r\n")
        async with webhook.connect() as peer:
            assert (await peer.post("/hook", review())).status == 200
        assert now() == 0


async def test_the_oldest_dawdler_should_make_room_when_there_are_too_many_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    async with (
        served(HOOK) as webhook,
        webhook.connect() as proven,
        webhook.connect() as first,
        webhook.connect() as second,
    ):
        await proven.post("/hook", review())
        await asyncio.sleep(NEWCOMER_SECONDS)
        async with webhook.connect() as third:
            assert (await third.post("/hook", review())).status == 200
            assert await first.is_closed()
            assert (await second.post("/hook", review())).status == 200
            assert (await proven.post("/hook", review())).status == 200
        assert now() == NEWCOMER_SECONDS


async def test_the_longest_idle_should_make_room_when_nobody_dawdles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    async with served(HOOK) as webhook, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(webhook.connect()) for _ in range(3)]
        for peer in (peers[1], peers[0], peers[2], peers[1]):
            assert (await peer.post("/hook", review())).status == 200
            await asyncio.sleep(1)
        for idle in (peers[0], peers[2]):
            newcomer = await stack.enter_async_context(webhook.connect())
            assert (await newcomer.post("/hook", review())).status == 200
            assert await idle.is_closed()
        assert (await peers[1].post("/hook", review())).status == 200
        assert now() == 4


async def test_the_slowest_request_should_make_room_when_all_connections_are_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def handle(request: AdmissionRequest) -> AdmissionResponse:
        await asyncio.sleep(5)
        return allowed()

    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    body = review()
    complete = head_of("POST", "/slow", len(body)) + body
    async with served(HOOK, Hook("/slow", handle, is_mutating=False)) as webhook, AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(webhook.connect()) for _ in range(3)]
        for peer in peers:
            assert (await peer.post("/hook", body)).status == 200
        for peer, data in zip(peers, (complete, complete[:-1], complete[:20]), strict=True):
            await peer.send(data)
            await asyncio.sleep(1)
        for slowest in (peers[1], peers[2]):
            await (await stack.enter_async_context(webhook.connect())).send(complete)
            await settle()
            assert await slowest.is_closed()
        assert (await peers[0].receive()).status == 200, "all of it was there"
        assert now() == 5


async def test_everybody_in_a_crowd_of_newcomers_should_be_served(monkeypatch: pytest.MonkeyPatch) -> None:
    async def come() -> Peer:
        peer = Peer(*await asyncio.open_connection("127.0.0.1", port))
        assert (await peer.request("GET", "/")).status == 200
        return peer

    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    async with serving(HttpServer("test", Address("127.0.0.1", 0), echo)) as port:
        idle = [await come() for _ in range(3)]
        newcomers = await asyncio.gather(*(come() for _ in range(3)))
        for peer in idle:
            assert await peer.is_closed()
        assert now() == 0
        for peer in (*idle, *newcomers):
            peer.abort()


async def test_plain_http_should_not_be_spoken() -> None:
    async with served(HOOK) as webhook:
        reader, writer = await asyncio.open_connection("127.0.0.1", webhook.port)
        writer.write(b"POST /hook HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in await reader.read()
        writer.close()
        await settle()
