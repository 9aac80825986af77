"""Real HTTP servers on loopback for tests, and answers as plain values."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from ktrainer.machinery.serving.httpserver import HttpServer


class Answer(NamedTuple):
    status: int
    text: str
    headers: dict[str, str]


@contextlib.asynccontextmanager
async def serving(server: HttpServer) -> AsyncIterator[int]:
    """Run the server and give its port."""
    task = asyncio.create_task(server.run())
    try:
        yield await server.wait_listening()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def fetch(port: int, path: str, *, method: str = "GET", tls: bool = False, **headers: str) -> Answer:
    """Ask over a connection of its own."""
    url = f"{'https' if tls else 'http'}://127.0.0.1:{port}{path}"
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, headers=headers, ssl=False) as response,
    ):
        return Answer(response.status, await response.text(), dict(response.headers))


def build_context(folder: Path) -> ssl.SSLContext:
    """Return the context of a server with a certificate that nobody should trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    path = folder / "pair.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context
