from __future__ import annotations

import asyncio
import contextlib
import ssl
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives import serialization

from ktrainer.machinery.certificates.serving import ServingCertificate, TlsPolicy
from support.certificates import Issuer
from support.httpspeer import connected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def serving(certificate: ServingCertificate) -> AsyncIterator[int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(100):
                writer.write(data)
        writer.close()

    # In debug mode asyncio reports every failed handshake as an error.
    asyncio.get_running_loop().set_debug(False)
    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=certificate.context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def can_talk(port: int, authority: bytes, name: str | None = "localhost", **options: Any) -> bool:
    """Whether a handshake succeeds and a byte comes back: in TLS 1.3 a refused client hears of it only then."""
    try:
        async with connected(port, authority, name, **options) as peer:
            await peer.send(b"?")
            return not await peer.is_closed()
    except OSError:
        return False


@pytest.mark.parametrize("name", ["localhost", None], ids=["with SNI", "without SNI"])
async def test_a_handshake_should_see_the_latest_pair(name: str | None) -> None:
    first, second = Issuer(), Issuer()
    certificate = ServingCertificate()
    certificate.install(*first.pair())
    async with serving(certificate) as port, connected(port, first.authority, name) as peer:
        certificate.install(*second.pair())
        assert await can_talk(port, second.authority, name)
        assert not await can_talk(port, first.authority, name)
        await peer.send(b"?")
        assert not await peer.is_closed(), "what is open stays open"


async def test_a_pair_that_is_no_good_should_leave_the_former_in_use() -> None:
    issuer, other = Issuer(), Issuer()
    certificate, key = issuer.pair()
    serving_certificate = ServingCertificate()
    serving_certificate.install(certificate, key)
    private = serialization.load_pem_private_key(key, None)
    protected = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"x")
    )
    async with serving(serving_certificate) as port:
        for bad in [
            (certificate, other.pair()[1]),
            (certificate, b""),
            (b"", key),
            (certificate[:-100], key),
            (certificate, protected),
            (b"\0\xff", b"\0\xff"),
        ]:
            with pytest.raises(ssl.SSLError):
                serving_certificate.install(*bad)
            assert await can_talk(port, issuer.authority)


async def test_handshakes_should_fail_until_there_is_a_pair() -> None:
    issuer = Issuer()
    certificate = ServingCertificate()
    async with serving(certificate) as port:
        assert not await can_talk(port, issuer.authority)
        certificate.install(*issuer.pair())
        assert await can_talk(port, issuer.authority)


@pytest.mark.parametrize(
    "version, is_welcome",
    [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_3, True)],
)
async def test_only_good_versions_of_tls_should_be_spoken(version: ssl.TLSVersion, is_welcome: bool) -> None:
    issuer = Issuer()
    certificate = ServingCertificate()
    certificate.install(*issuer.pair())
    context = ssl.create_default_context(cadata=issuer.authority.decode())
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.set_alpn_protocols(["h2", "http/1.1"])
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version = context.maximum_version = version
    async with serving(certificate) as port:
        with contextlib.nullcontext() if is_welcome else pytest.raises((ssl.SSLError, ConnectionResetError)):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "http/1.1"
            writer.close()
            await writer.wait_closed()


async def test_clients_should_be_asked_for_a_certificate_where_authorities_are_given() -> None:
    issuer, clients, strangers = Issuer(), Issuer(), Issuer()
    certificate = ServingCertificate(clients.authority)
    certificate.install(*issuer.pair())
    async with serving(certificate) as port:
        assert await can_talk(port, issuer.authority, client=clients.pair())
        assert not await can_talk(port, issuer.authority, client=strangers.pair())
        assert not await can_talk(port, issuer.authority)


@pytest.mark.parametrize(
    "policy, is_welcome",
    [
        pytest.param(TlsPolicy(ciphers=("ECDHE-ECDSA-AES128-GCM-SHA256",)), True, id="the cipher is allowed"),
        pytest.param(TlsPolicy(ciphers=("ECDHE-ECDSA-AES256-GCM-SHA384",)), False, id="another cipher is"),
        pytest.param(TlsPolicy(ssl.TLSVersion.TLSv1_3), False, id="the version is too old"),
    ],
)
async def test_the_policy_should_decide_which_handshakes_succeed(policy: TlsPolicy, is_welcome: bool) -> None:
    issuer = Issuer()
    certificate = ServingCertificate(tls=policy)
    certificate.install(*issuer.pair())
    context = ssl.create_default_context(cadata=issuer.authority.decode())
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256")
    async with serving(certificate) as port:
        with contextlib.nullcontext() if is_welcome else pytest.raises((ssl.SSLError, ConnectionResetError)):
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
            writer.close()
            await writer.wait_closed()


def test_a_policy_without_a_known_cipher_should_be_refused() -> None:
    with pytest.raises(ssl.SSLError):
        ServingCertificate(tls=TlsPolicy(ciphers=("NO-SUCH-CIPHER",)))
