from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest

from ktrainer.machinery import connections
from ktrainer.machinery.admission import AdmissionRequest, AdmissionResponse, Hook, allowed
from ktrainer.machinery.connections import HANDSHAKE_SECONDS, HEADER_SECONDS, KEEPALIVE_SECONDS
from support.admissionserver import served
from support.httpspeer import head_of
from support.reviews import review
from support.virtualtime import settle


async def allow(request: AdmissionRequest) -> AdmissionResponse:
    return allowed()


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
        async with webhook.connect() as third:
            assert (await third.post("/hook", review())).status == 200
            assert await first.is_closed()
            assert (await second.post("/hook", review())).status == 200
            async with webhook.connect() as fourth:
                assert await fourth.is_closed(), "nobody dawdles, so the newcomer has to go"
            assert (await proven.post("/hook", review())).status == 200
        assert now() == 0


async def test_plain_http_should_not_be_spoken() -> None:
    async with served(HOOK) as webhook:
        reader, writer = await asyncio.open_connection("127.0.0.1", webhook.port)
        writer.write(b"POST /hook HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in await reader.read()
        writer.close()
        await settle()
