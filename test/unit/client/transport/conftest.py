"""A transport to a scripted server, in virtual time."""

from collections.abc import AsyncIterator

import pytest

from ktrainer.client.transport.aiohttptransport import AiohttpTransport
from support.clients import transport_to
from support.scriptedserver import ScriptedServer, serving
from support.virtualtime import VirtualClock


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with serving() as server:
        yield server


@pytest.fixture
async def transport(server: ScriptedServer, virtual_clock: VirtualClock) -> AsyncIterator[AiohttpTransport]:
    async with transport_to(server, virtual_clock) as transport:
        yield transport
