"""The proxy itself: an event loop in a thread of its own, apart from the loop of what is under test."""

from __future__ import annotations

import asyncio
import base64
import ssl
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import yaml

from clusters.pki import Authority
from clusters.ports import LOOPBACK
from support.faultproxy.http1 import Answer, Request, body_of, chunk_of, read_answer_head, read_request
from support.faultproxy.rules import Cut, Rule

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence
    from pathlib import Path
    from types import TracebackType

_LINE_LIMIT = 16 * 1024 * 1024


@dataclass(frozen=True)
class Seen:
    """A request that came by."""

    at: float
    """Monotonic time."""
    request: Request
    status: int
    """Of the answer that the client was sent; 0 where it was sent none."""


class FaultProxy:
    """A context manager: inside it, the API server can be reached through the proxy with `kubeconfig`."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        document = yaml.safe_load(kubeconfig.read_text())
        self._upstream = urlsplit(document["clusters"][0]["cluster"]["server"])
        self._upstream_tls = _client_context(document, folder)
        self._server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._folder = folder
        self._document = document
        authority = Authority("authority of the fault proxy")
        _load_certificate(self._server_tls, authority, folder)
        self.authority = authority.certificate
        """What clients have to trust at first, in PEM."""
        self.kubeconfig = folder / "proxied.yaml"
        self.rules: Sequence[Rule] = ()
        """Replaced as a whole, from any thread; the first rule that matches a request is its fault."""
        self.seen: list[Seen] = []
        """Appended to by the proxy's thread when an answer's head, or nothing, has been sent."""
        self.connections: list[float] = []
        """The monotonic times at which clients connected, also while the proxy was frozen."""
        self.bytes_per_second: float | None = None
        """How fast bytes reach the clients; None: as they come."""
        self._flowing: asyncio.Event | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="fault proxy", daemon=True)
        self._stopped: asyncio.Event | None = None
        self._started = threading.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._in_loop(self._stop())
        self._thread.join()

    def freeze(self) -> None:
        """Let no byte through in either direction, on old and new connections, and close none of them."""
        self._in_loop(self._set_flowing(is_flowing=False))

    def thaw(self) -> None:
        """Let bytes through again."""
        self._in_loop(self._set_flowing(is_flowing=True))

    def cut_all(self) -> None:
        """Reset every connection that is open now."""
        self._in_loop(self._abort_all())

    def renew_certificate(self) -> bytes:
        """Serve by the certificate of a new authority from now on, and return that authority's own certificate."""
        authority = Authority("new authority of the fault proxy")
        self._in_loop(self._load(authority))
        return authority.certificate

    def count(self, since: int = 0, **kinds: bool) -> int:
        """Count the requests from the `since`th on whose properties have these values: `is_list=True`, for example."""
        return sum(
            all(getattr(each.request, name) == value for name, value in kinds.items()) for each in self.seen[since:]
        )

    def _in_loop(self, coroutine: Coroutine[None, None, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._flowing, self._stopped = asyncio.Event(), asyncio.Event()
        self._flowing.set()
        server = await asyncio.start_server(self._client, LOOPBACK, 0, ssl=self._server_tls, limit=_LINE_LIMIT)
        self._write_kubeconfig(server.sockets[0].getsockname()[1])
        self._started.set()
        await self._stopped.wait()
        server.close()
        await self._abort_all()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def _write_kubeconfig(self, port: int) -> None:
        cluster = {
            "server": f"https://{LOOPBACK}:{port}",
            "certificate-authority-data": base64.b64encode(self.authority).decode(),
        }
        name = self._document["contexts"][0]["context"]["cluster"]
        user = [{"name": self._document["users"][0]["name"], "user": {}}]
        changed = {**self._document, "clusters": [{"name": name, "cluster": cluster}], "users": user}
        self.kubeconfig.write_text(yaml.safe_dump(changed))

    async def _stop(self) -> None:
        assert self._stopped is not None
        self._stopped.set()

    async def _set_flowing(self, *, is_flowing: bool) -> None:
        assert self._flowing is not None
        if is_flowing:
            self._flowing.set()
        else:
            self._flowing.clear()

    async def _load(self, authority: Authority) -> None:
        _load_certificate(self._server_tls, authority, self._folder)

    async def _abort_all(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        self.connections.append(time.monotonic())
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                request = await read_request(reader)
                await self._flow()
                if writer.is_closing():
                    # It was frozen, and whoever asked has given up: what the network lost does not arrive later.
                    raise Cut
                if upstream is None or upstream[1].is_closing():
                    upstream = await self._connect()
                await self._exchange(request, (reader, writer), upstream)
        except (Cut, OSError, EOFError, asyncio.LimitOverrunError, ssl.SSLError):
            # Whatever ended it, the client notices by the end of its connection.
            writer.transport.abort()
        finally:
            self._writers.discard(writer)
            for each in (writer, *([upstream[1]] if upstream else [])):
                each.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._upstream.hostname), self._upstream.port
        return await asyncio.open_connection(host, port, ssl=self._upstream_tls, limit=_LINE_LIMIT)

    async def _flow(self) -> None:
        assert self._flowing is not None
        await self._flowing.wait()

    async def _exchange(
        self,
        request: Request,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        rule = next((each for each in self.rules if each.applies_to(request)), Rule(lambda _: True))
        count = len(self.seen)
        try:
            forged = await rule.before(request)
            if forged is not None:
                await self._answer(request, forged, client[1])
                return
            upstream[1].write(request.head + request.body)
            await upstream[1].drain()
            answer = await read_answer_head(upstream[0])
            if request.is_watch and answer.status == 200:
                self._record(request, answer.status)
                await self._relay_stream(request, answer, rule, client, upstream[0])
                return
            body = b"".join([piece async for piece in body_of(upstream[0], answer, request.method)])
            await self._answer(
                request, await rule.after(request, Answer(answer.status, answer.headers, body)), client[1]
            )
        finally:
            if all(each.request is not request for each in self.seen[count:]):
                self._record(request, 0)

    async def _answer(self, request: Request, answer: Answer, writer: asyncio.StreamWriter) -> None:
        # Noted before it is sent: who gets the answer may look at once at what was seen.
        self._record(request, answer.status)
        await self._send(writer, answer.encoded())

    def _record(self, request: Request, status: int) -> None:
        self.seen.append(Seen(time.monotonic(), request, status))

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        await self._flow()
        if self.bytes_per_second:
            await asyncio.sleep(len(data) / self.bytes_per_second)
        writer.write(data)
        await writer.drain()

    async def _relay_stream(
        self,
        request: Request,
        answer: Answer,
        rule: Rule,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        upstream: asyncio.StreamReader,
    ) -> None:
        relay = asyncio.ensure_future(self._relay_lines(request, answer, rule, client[1], upstream))
        # A client that ends its watch closes the connection: nothing else can come from it now.
        gone = asyncio.ensure_future(client[0].read(1))
        try:
            await asyncio.wait({relay, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not relay.done():
                raise Cut
            relay.result()
        finally:
            for task in (relay, gone):
                task.cancel()
            await asyncio.gather(relay, gone, return_exceptions=True)
        # The read above may have eaten a byte of the next request, so there can be none.
        raise Cut

    async def _relay_lines(
        self, request: Request, answer: Answer, rule: Rule, writer: asyncio.StreamWriter, upstream: asyncio.StreamReader
    ) -> None:
        await self._send(writer, answer.encoded_head())
        cut = rule.cut_after(request)
        sent = 0
        pending = b""
        async for piece in body_of(upstream, answer, request.method):
            *lines, pending = (pending + piece).split(b"\n")
            for line in lines:
                for changed in await rule.line(request, line + b"\n"):
                    data = chunk_of(changed)
                    if cut is not None and sent == cut[0]:
                        await self._send(writer, data[: cut[1]])
                        raise Cut
                    await self._send(writer, data)
                    sent += 1
        await self._send(writer, b"0\r\n\r\n")


def _client_context(document: dict[str, list[dict[str, dict[str, str]]]], folder: Path) -> ssl.SSLContext:
    cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    pair = folder / "upstream.pem"
    pair.touch(mode=0o600)
    pair.write_bytes(base64.b64decode(user["client-certificate-data"]) + base64.b64decode(user["client-key-data"]))
    context.load_cert_chain(pair)
    return context


def _load_certificate(context: ssl.SSLContext, authority: Authority, folder: Path) -> None:
    certificate, key = folder / "proxy.crt", folder / "proxy.key"
    authority.issue("fault proxy", serving=True).write(certificate, key)
    context.load_cert_chain(certificate, key)
