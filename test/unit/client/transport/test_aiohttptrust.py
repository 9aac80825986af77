"""How the transport and the server come to trust each other: certificates and tokens, and their renewal."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from clusters.pki import Authority
from ktrainer.aio.clock import SystemClock
from ktrainer.client.config.config import Material, TlsConfig
from ktrainer.client.credentials.credentials import Credentials, FileCredentials, FixedCredentials, Grant
from ktrainer.client.errors import CertificateRejected, ConnectFailed, CredentialsFailed
from ktrainer.client.transport.aiohttptransport import AiohttpTransport
from ktrainer.client.transport.tls import CertificatePair
from ktrainer.client.transport.transport import Request
from support.clients import authority, server_tls, transport_to
from support.scriptedserver import CHUNKED, Action, Script, ScriptedServer, Seen, answer, chunk, head, serving
from support.virtualtime import VirtualClock

GET = Request("GET", "/x", {}, None, 60)
POST = Request("POST", "/x", {}, b"{}", 60)


@asynccontextmanager
async def secured(
    folder: Path, clock: VirtualClock, tls: TlsConfig, *, by: Authority | None = None, clients: bytes = b""
) -> AsyncIterator[tuple[ScriptedServer, AiohttpTransport]]:
    pair = (by or authority()).issue("server", serving=True)
    async with serving(server_tls(folder, pair, clients)) as server, transport_to(server, clock, tls=tls) as transport:
        server.responder = lambda _: (answer(),)
        yield server, transport


async def test_a_server_should_be_trusted_by_its_authority(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    tls = TlsConfig(authorities=Material(data=authority().certificate))
    async with secured(tmp_path, virtual_clock, tls) as (server, transport):
        for _ in range(2):
            assert (await transport.request(GET)).status == 200
        assert server.connections == 1
        transport.reset()
        assert (await transport.request(GET)).status == 200
        assert server.connections == 2


@pytest.mark.parametrize("authorities", [Material(data=Authority("foreign").certificate), None])
async def test_a_server_of_a_foreign_authority_should_be_rejected(
    tmp_path: Path, virtual_clock: VirtualClock, authorities: Material | None
) -> None:
    async with secured(tmp_path, virtual_clock, TlsConfig(authorities=authorities)) as (server, transport):
        with pytest.raises(CertificateRejected, match="verify failed"):
            await transport.request(GET)
        with pytest.raises(CertificateRejected):
            async with transport.stream(GET, idle_seconds=None):
                pass
        assert not server.requests


@pytest.mark.parametrize(
    "tls",
    [
        pytest.param(TlsConfig(insecure=True), id="that is not verified"),
        pytest.param(
            TlsConfig(authorities=Material(data=authority().certificate), server_name="kubernetes.default.svc"),
            id="by another name",
        ),
    ],
)
async def test_a_server_should_be_accepted(tmp_path: Path, virtual_clock: VirtualClock, tls: TlsConfig) -> None:
    async with secured(tmp_path, virtual_clock, tls) as (_, transport):
        assert (await transport.request(GET)).status == 200


async def test_a_server_of_another_name_should_be_rejected(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    tls = TlsConfig(authorities=Material(data=authority().certificate), server_name="elsewhere.example")
    async with secured(tmp_path, virtual_clock, tls) as (_, transport):
        with pytest.raises(CertificateRejected, match="elsewhere"):
            await transport.request(GET)


async def test_a_new_authority_should_be_picked_up_at_once(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(Authority("before").certificate)
    async with secured(tmp_path, virtual_clock, TlsConfig(authorities=Material(path=path))) as (server, transport):
        path.write_bytes(authority().certificate)
        assert (await transport.request(POST)).status == 200
        assert len(server.requests) == 1
    assert virtual_clock.monotonic() == 0


async def test_a_new_authority_should_be_picked_up_by_all_requests_under_way(
    tmp_path: Path, virtual_clock: VirtualClock
) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(Authority("before").certificate)
    async with secured(tmp_path, virtual_clock, TlsConfig(authorities=Material(path=path))) as (server, transport):
        path.write_bytes(authority().certificate)
        answers = await asyncio.gather(*(transport.request(POST) for _ in range(5)))
        assert [each.status for each in answers] == [200] * 5
        assert len(server.requests) == 5


async def test_a_client_certificate_should_be_shown(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    pair = authority().issue("me")
    tls = TlsConfig(Material(data=authority().certificate), Material(data=pair.certificate), Material(data=pair.key))
    async with secured(tmp_path, virtual_clock, tls, clients=authority().certificate) as (_, transport):
        assert (await transport.request(GET)).status == 200


async def test_tls_should_not_wait_for_ever(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    async with serving() as server:
        server.greetings.append(Action.HANG)
        url = server.url.replace("http:", "https:")
        async with transport_to(url, virtual_clock) as transport:
            with pytest.raises(ConnectFailed, match="in time"):
                await transport.request(GET)
    assert virtual_clock.monotonic() == 10


async def test_a_server_without_tls_should_be_no_connection(virtual_clock: VirtualClock) -> None:
    async with serving() as server, transport_to(server.url.replace("http:", "https:"), virtual_clock) as transport:
        with pytest.raises(ConnectFailed):
            await transport.request(GET)


def accepting(token: Callable[[], str], good: Script) -> Callable[[Seen], Script]:
    """A server that lets nobody in without the right token."""
    return lambda seen: good if seen.headers.get("authorization") == f"Bearer {token()}" else (answer(401),)


async def test_a_token_should_be_sent(virtual_clock: VirtualClock) -> None:
    async with serving() as server:
        server.responder = accepting(lambda: "secret", (answer(),))
        async with transport_to(server, virtual_clock, credentials=FixedCredentials("Bearer secret")) as transport:
            assert (await transport.request(GET)).status == 200
        async with transport_to(server, virtual_clock, credentials=FixedCredentials("Bearer other")) as transport:
            assert (await transport.request(GET)).status == 401
    assert len(server.requests) == 2


async def test_a_token_that_was_replaced_should_be_read_again_after_a_401(
    tmp_path: Path, virtual_clock: VirtualClock
) -> None:
    path = tmp_path / "token"
    path.write_text("old\n")
    async with serving() as server:
        server.responder = accepting(path.read_text().strip, (answer(),))
        server.responder = accepting(lambda: path.read_text().strip(), (answer(),))
        credentials = FileCredentials(path, virtual_clock)
        async with transport_to(server, virtual_clock, credentials=credentials) as transport:
            assert (await transport.request(POST)).status == 200
            path.write_text("new\n")
            assert (await transport.request(POST)).status == 200
            assert [seen.headers["authorization"] for seen in server.requests] == [
                "Bearer old",
                "Bearer old",
                "Bearer new",
            ]
            server.responder = lambda _: (answer(401),)
            assert (await transport.request(POST)).status == 401
            assert len(server.requests) == 4


async def test_a_stream_should_read_a_replaced_token_again_after_a_401(
    tmp_path: Path, virtual_clock: VirtualClock
) -> None:
    path = tmp_path / "token"
    path.write_text("old")
    async with serving() as server:
        server.responder = accepting(lambda: "new", (CHUNKED, chunk(b"1\n"), chunk(b"")))
        credentials = FileCredentials(path, virtual_clock)
        async with transport_to(server, virtual_clock, credentials=credentials) as transport:
            await credentials.grant()
            path.write_text("new")
            async with transport.stream(GET, idle_seconds=80) as stream:
                assert stream.status == 200
                assert [each async for each in stream.chunks()] == [b"1\n"]


class Plugin:
    """Credentials that are another certificate after each rejection."""

    def __init__(self, *grants: Grant) -> None:
        self.grants = list(grants)

    async def grant(self) -> Grant:
        return self.grants[0]

    def reject(self, grant: Grant) -> bool:
        self.grants.remove(grant)
        return bool(self.grants)

    async def close(self) -> None:
        pass


async def test_a_new_certificate_should_mean_a_new_connection(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    first, second = (authority().issue(name) for name in ("first", "second"))
    credentials: Credentials = Plugin(
        *(Grant("", CertificatePair(each.certificate, each.key)) for each in (first, second))
    )
    tls = server_tls(tmp_path, authority().issue("server", serving=True), authority().certificate)
    async with serving(tls) as server:
        server.will(answer(), answer(401), answer())
        trust = TlsConfig(authorities=Material(data=authority().certificate))
        async with transport_to(server, virtual_clock, tls=trust, credentials=credentials) as transport:
            await transport.request(GET)
            assert (await transport.request(GET)).status == 200
    assert [seen.connection for seen in server.requests] == [1, 1, 2]


async def test_without_credentials_nothing_should_be_sent(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    async with serving() as server:
        credentials = FileCredentials(tmp_path / "none", virtual_clock)
        async with transport_to(server, virtual_clock, credentials=credentials) as transport:
            with pytest.raises(CredentialsFailed, match="none"):
                await transport.request(GET)
    assert not server.requests


async def test_a_proxy_should_be_used(tmp_path: Path, virtual_clock: VirtualClock) -> None:
    async with serving() as proxy:
        proxy.will(answer(200, b"by proxy"))
        async with transport_to("http://api.invalid", virtual_clock, proxy=proxy.url) as transport:
            assert (await transport.request(GET)).body == b"by proxy"
        assert proxy.requests[0].path == "http://api.invalid/x"
        proxy.will((head(403), Action.CLOSE))
        async with transport_to("https://api.invalid", virtual_clock, proxy=proxy.url) as transport:
            with pytest.raises(ConnectFailed, match="403"):
                await transport.request(GET)
        assert (proxy.requests[1].method, proxy.requests[1].path) == ("CONNECT", "api.invalid:443")


async def test_a_stream_should_be_closed_without_a_farewell_that_a_dead_peer_would_not_answer(tmp_path: Path) -> None:
    context = server_tls(tmp_path, authority().issue("server", serving=True))

    def serve(listener: socket.socket) -> bytes:
        """Answer the beginning of a stream, and return what comes after that outside of TLS."""
        secured = context.wrap_socket(listener.accept()[0], server_side=True)
        secured.recv(65536)
        secured.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with socket.socket(fileno=secured.detach()) as bare:
            bare.settimeout(10)
            return bare.recv(65536)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(asyncio.to_thread(serve, listener))
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        async with transport_to(url, SystemClock()) as transport:
            async with transport.stream(GET, idle_seconds=None) as stream:
                assert stream.status == 200
            assert await serving == b""
