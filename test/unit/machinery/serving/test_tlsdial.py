from __future__ import annotations

import asyncio
import contextlib
import ssl

import pytest

from ktrainer.machinery.certificates.serving import ServingCertificate
from ktrainer.machinery.serving.tlsdial import DIAL_SECONDS, dial
from support.admissionserver import served
from support.certificates import Issuer


async def test_a_server_that_shakes_hands_should_be_found_ready() -> None:
    async with served() as webhook:
        await dial("127.0.0.1", webhook.port)
    with pytest.raises(ConnectionRefusedError):
        await dial("127.0.0.1", webhook.port)


async def test_a_server_without_a_certificate_should_not_be_found_ready() -> None:
    asyncio.get_running_loop().set_debug(False)
    certificate = ServingCertificate()
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0, ssl=certificate.context)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises((ssl.SSLError, ConnectionResetError)):
        await dial("127.0.0.1", port)
    certificate.install(*Issuer().pair())
    await dial("127.0.0.1", port)
    server.close()


async def test_a_server_that_hangs_should_not_be_waited_for_without_limit() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    asyncio.get_running_loop().set_debug(False)
    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    with pytest.raises(TimeoutError):
        await dial("127.0.0.1", server.sockets[0].getsockname()[1])
    assert asyncio.get_running_loop().time() == pytest.approx(DIAL_SECONDS)
    server.close()
