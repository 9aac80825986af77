"""The admission server: hooks over HTTPS, for API servers to call.

Every review is answered with HTTP 200 and an AdmissionReview, failures included, because to an API server any other
status means that the call failed, and then the failure policy may let the object in. Only what is no review at all gets
another status. The certificate is the TLS context's business; routing, limits and the way to stop are ours.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from aiohttp import web

from ktrainer.machinery.admission.runner import LARGE_BODY_BYTES, AdmissionRunner
from ktrainer.machinery.serving.connections import DRAIN_SECONDS, ConnectionServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from ktrainer.machinery.admission.hook import Hook
    from ktrainer.machinery.admission.metrics import HookMetrics, WebhookMetrics

_log = structlog.get_logger(__name__)

PORT = 9443

MAX_BODY_BYTES = 7 * 1024 * 1024
"""Two objects of 3 MiB, the most that etcd takes with room to spare, and 1 MiB for what surrounds them."""

MAX_LARGE_READS = 8
"""Large bodies that are in memory at a time; further ones stay in the network until one of these is answered."""

DEFAULT_TIMEOUT_SECONDS = 10.0
"""How long an API server waits where it does not say."""

MAX_TIMEOUT_SECONDS = 30.0
"""The longest that a webhook configuration can ask for."""

DEADLINE_MARGIN_SECONDS = 0.5
"""How long before the API server gives up it shall have our answer."""

IN_FLIGHT_SECONDS = 30.0
"""How long requests that are under way when the server has drained may take."""

_SECONDS = re.compile(r"(\d{1,4})s", re.ASCII)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Where and how to serve."""

    host: str | None = None
    """The address to listen on; None means all."""
    port: int = PORT
    """0 lets the system choose one."""
    drain_seconds: float = DRAIN_SECONDS
    in_flight_seconds: float = IN_FLIGHT_SECONDS
    client_names: frozenset[str] = frozenset()
    """Common names of the client certificates that may call, all if empty; needs a context that asks for them."""


class _Refused(Exception):
    """A request that is no review: refused before any handler sees it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class AdmissionServer:
    """Serves the hooks that were registered before `run`."""

    def __init__(self, context: ssl.SSLContext, metrics: WebhookMetrics, options: ServerOptions) -> None:
        self._context = context
        self._metrics = metrics
        self._options = options
        self._hooks: dict[str, tuple[Hook, HookMetrics]] = {}
        self._runner = AdmissionRunner(metrics)
        self._large_reads = asyncio.Semaphore(MAX_LARGE_READS)
        self._stop = asyncio.Event()
        self._listening = asyncio.Event()
        self.port = options.port
        """Where it listens, once it does."""

    def register(self, hook: Hook) -> None:
        """Serve a hook; raises ValueError when its path is taken."""
        if hook.path in self._hooks:
            raise ValueError(f"there is already a hook at {hook.path}")
        self._hooks[hook.path] = (hook, self._metrics.hook(hook.path))

    @property
    def is_listening(self) -> bool:
        """Whether connections are accepted."""
        return self._listening.is_set()

    @property
    def host(self) -> str:
        """Where it can be reached on this machine."""
        return self._options.host or "localhost"

    def stop(self) -> None:
        """Let `run` come to its end: serve on for a while, then refuse connections, then finish what is under way."""
        self._stop.set()

    async def wait_listening(self) -> int:
        """Wait until connections are accepted, and return the port."""
        await self._listening.wait()
        return self.port

    async def run(self) -> None:
        """Serve until `stop`, then drain; if cancelled, drop everything at once. Raises OSError if it cannot listen."""
        async with self._listen() as server:
            _log.info("admission server listens", port=self.port, webhooks=sorted(self._hooks))
            await self._stop.wait()
            _log.info("admission server drains", seconds=self._options.drain_seconds)
            await server.drain(self._options.drain_seconds)
            await server.finish(self._options.in_flight_seconds)

    @contextlib.asynccontextmanager
    async def _listen(self) -> AsyncIterator[ConnectionServer]:
        server = ConnectionServer(self._handle)
        self.port = await server.listen(self._options.host, self._options.port, self._context)
        self._listening.set()
        try:
            yield server
        finally:
            self._listening.clear()
            await server.close()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        hook, metrics = self._hooks.get(request.path, (None, None))
        if hook is None or metrics is None:
            return self._response(404, b"no such webhook", "text/plain")
        loop = asyncio.get_running_loop()
        began_at = loop.time()
        code = 500
        metrics.begin()
        try:
            deadline = began_at + seconds_of(request.query.get("timeout", ""))
            answer = await self._answer(request, hook, deadline)
            code = 200
            return self._response(code, answer, "application/json")
        except _Refused as refusal:
            code = refusal.status
            return self._response(code, refusal.text.encode(), "text/plain")
        except asyncio.CancelledError:
            code = 499
            raise
        finally:
            metrics.end(code, loop.time() - began_at)

    async def _answer(self, request: web.BaseRequest, hook: Hook, deadline: float) -> bytes:
        if self._options.client_names and _common_name(request) not in self._options.client_names:
            raise _Refused(403, "this client may not call webhooks")
        _check(request)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout_at(deadline):
                    if request.content_length is None or request.content_length > LARGE_BODY_BYTES:
                        await stack.enter_async_context(self._large_reads)
                    body = await _read(request)
            except TimeoutError:
                raise _Refused(408, "the body did not come in time")
            return await self._runner.answer(hook, body, deadline)

    def _response(self, status: int, body: bytes, content_type: str) -> web.Response:
        response = web.Response(status=status, body=body, content_type=content_type)
        if status == 405:
            response.headers["Allow"] = "POST"
        if status != 200:
            response.force_close()
        return response


def seconds_of(timeout: str) -> float:
    """How long a handler may take, given the `timeout` that an API server passes on, such as 10s."""
    match = _SECONDS.fullmatch(timeout)
    seconds = min(float(match[1]), MAX_TIMEOUT_SECONDS) if match else DEFAULT_TIMEOUT_SECONDS
    return max(seconds - DEADLINE_MARGIN_SECONDS, DEADLINE_MARGIN_SECONDS)


def _check(request: web.BaseRequest) -> None:
    if request.method != "POST":
        raise _Refused(405, "reviews are sent with POST")
    if request.headers.get("Content-Type") != "application/json":
        raise _Refused(415, "reviews are sent as application/json")
    if request.content_length is not None and request.content_length > MAX_BODY_BYTES:
        raise _Refused(413, f"the body has more than {MAX_BODY_BYTES} bytes")


async def _read(request: web.BaseRequest) -> bytes:
    body = bytearray()
    while chunk := await request.content.readany():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise _Refused(413, f"the body has more than {MAX_BODY_BYTES} bytes")
    return bytes(body)


def _common_name(request: web.BaseRequest) -> str:
    certificate = request.get_extra_info("peercert") or {}
    names = (value for part in certificate.get("subject", ()) for key, value in part if key == "commonName")
    return next(names, "")
