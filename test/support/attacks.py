"""What strangers try on the servers of a manager, and what admission is like meanwhile."""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
import time
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from clusters.ports import LOOPBACK
from ktrainer.webhook.registration import TRAINJOB_VALIDATOR
from support.reviews import accept, review

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from clusters.api import Object

_TIMEOUT_SECONDS = 30.0


def trusting() -> ssl.SSLContext:
    """A context of somebody who does not care whom he talks to."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass(frozen=True)
class Attempt:
    """A request that must not succeed."""

    port: int
    method: str
    path: str
    token: str = ""
    body: bytes = b""
    chunked: bool = False

    def make(self) -> int:
        """Try, and return the status; 0 where the server hangs up."""
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        body = self._chunks() if self.chunked else self.body
        with closing(self._connection()) as connection:
            try:
                connection.request(self.method, self.path, body, headers, encode_chunked=self.chunked)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                return 0
            return answer.status

    def _connection(self) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(LOOPBACK, self.port, timeout=_TIMEOUT_SECONDS, context=trusting())

    def _chunks(self) -> Iterator[bytes]:
        for start in range(0, len(self.body), 1024):
            yield self.body[start : start + 1024]


@dataclass
class Admission:
    """What became of reviews."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def quantile(self, share: float) -> float:
        """The time that so many of the reviews stayed below."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


@asynccontextmanager
async def admitting(port: int, trainjob: Object, per_second: float) -> AsyncIterator[Admission]:
    """Have a TrainJob reviewed over and over on a connection that is kept, as an API server does, in a thread."""
    admission, ended = Admission(), threading.Event()
    kind = {"group": "trainer.kubeflow.org", "version": "v1alpha1", "kind": "TrainJob"}
    body = review("u", kind=kind, namespace=trainjob["metadata"]["namespace"], object=trainjob)

    def work() -> None:
        connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=10, context=trusting())
        with closing(connection):
            while not ended.wait(1 / per_second):
                began = time.monotonic()
                try:
                    connection.request("POST", TRAINJOB_VALIDATOR.path, body, {"Content-Type": "application/json"})
                    answer = accept(connection.getresponse().read(), "u", is_mutating=False)
                    assert answer["allowed"], orjson.dumps(answer)
                except (OSError, AssertionError, http.client.HTTPException) as error:
                    admission.failures.append(repr(error))
                    connection.close()
                admission.seconds.append(time.monotonic() - began)

    task = asyncio.create_task(asyncio.to_thread(work), name="reviews")
    try:
        yield admission
    finally:
        ended.set()
        await task


async def dawdle(port: int, limit_seconds: float) -> float:
    """Begin a request and send a byte of it now and then; return how long the server puts up with it, at most."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=trusting())
    began = time.monotonic()
    with suppress(OSError):
        writer.write(b"POST / HTTP/1.1\r\nX-")
        while time.monotonic() - began < limit_seconds and not await _has_ended(reader):
            writer.write(b"x")
    seconds = time.monotonic() - began
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()
    return seconds


async def _has_ended(reader: asyncio.StreamReader) -> bool:
    try:
        async with asyncio.timeout(1):
            return not await reader.read(1)
    except TimeoutError:
        return False
