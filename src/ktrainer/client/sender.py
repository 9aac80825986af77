"""The one way by which requests leave: waits for the rate limit, asks the fence, counts, repeats what may be repeated,
and turns answers other than success into exceptions.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import structlog

from ktrainer.client.errors import TransportError
from ktrainer.client.metrics import NO_ANSWER
from ktrainer.client.retry import RETRY_AFTER_MAX_SECONDS, Retries, retry_after_of
from ktrainer.client.warninglog import WarningLog
from ktrainer.kube.errors import error_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

    from ktrainer.aio.clock import Clock
    from ktrainer.client.metrics import ClientMetrics
    from ktrainer.client.servertime import ServerTime
    from ktrainer.client.throttle import Throttle
    from ktrainer.client.transport.transport import Request, Response, Stream, Transport
    from ktrainer.kube.errors import ApiError
    from ktrainer.kube.identity import GroupKind

_REFUSAL_LIMIT = 64 * 1024
"""How much is read of the answer that refuses a stream."""

_log = structlog.get_logger(__name__)


class Sender:
    """Sends the requests of one client; none waits for more than `max_wait_seconds` where the server asks for that."""

    def __init__(  # noqa: PLR0913 - a composition of parts
        self,
        *,
        throttle: Throttle,
        metrics: ClientMetrics,
        server_time: ServerTime,
        clock: Clock,
        random: Random,
        max_wait_seconds: float = RETRY_AFTER_MAX_SECONDS,
    ) -> None:
        self._throttle = throttle
        self._metrics = metrics
        self._server_time = server_time
        self._clock = clock
        self._random = random
        self._max_wait_seconds = max_wait_seconds
        self._warnings = WarningLog()

    async def send(
        self,
        transport: Transport,
        request: Request,
        kind: GroupKind,
        *,
        fence: Callable[[], None] | None,
        repeatable: bool,
    ) -> Response:
        """Return the answer if it is a success; raise ApiError or TransportError when no try is left.

        `fence` is called right before each try leaves, and its exceptions are passed on. `repeatable` says that the
        request does no harm if it is carried out twice.
        """
        retries = Retries(repeatable=repeatable, random=self._random, max_wait_seconds=self._max_wait_seconds)
        while True:
            if waited := await self._throttle.wait(kind):
                self._metrics.throttled(request.method, waited)
            if fence is not None:
                fence()
            sent_at = self._clock.monotonic()
            try:
                response = await transport.request(request)
            except TransportError as error:
                await self._wait_after_error(request, error, retries, sent_at)
                continue
            self._note_answer(request, response.status, response.headers, sent_at, len(response.body))
            if response.status < 300:
                return response
            failure = _failure_of(response.status, response.headers, response.body)
            await self._wait_after_answer(request, response.headers, failure, retries)

    async def open(
        self, transport: Transport, request: Request, idle_seconds: float | None, stack: AsyncExitStack
    ) -> Stream:
        """Open a stream, to be closed by `stack`; raise ApiError or TransportError when no try is left.

        Not subject to the rate limit: streams are few and long.
        """
        retries = Retries(repeatable=True, random=self._random, max_wait_seconds=self._max_wait_seconds)
        while True:
            sent_at = self._clock.monotonic()
            try:
                async with AsyncExitStack() as attempt:
                    stream = await attempt.enter_async_context(transport.stream(request, idle_seconds=idle_seconds))
                    self._note_answer(request, stream.status, stream.headers, sent_at, 0)
                    if stream.status < 300:
                        stack.push_async_exit(attempt.pop_all())
                        return stream
                    body = await _refusal_of(stream)
            except TransportError as error:
                await self._wait_after_error(request, error, retries, sent_at)
                continue
            failure = _failure_of(stream.status, stream.headers, body)
            await self._wait_after_answer(request, stream.headers, failure, retries)

    def _note_answer(
        self, request: Request, status: int, headers: Mapping[str, str], sent_at: float, received: int
    ) -> None:
        now = self._clock.monotonic()
        self._metrics.answered(request.method, status, now - sent_at, len(request.body or b""), received)
        if date := headers.get("Date"):
            self._server_time.observe(date, sent_at, now)
        self._warnings.note(headers, request.path)

    async def _wait_after_error(
        self, request: Request, error: TransportError, retries: Retries, sent_at: float
    ) -> None:
        """Wait before the next try, or raise the error when there is none."""
        self._metrics.failed(request.method, self._clock.monotonic() - sent_at)
        seconds = retries.after_error(error)
        if seconds is None:
            raise error
        self._metrics.retried(request.method, NO_ANSWER)
        _log.debug("sending again", method=request.method, path=_bare(request.path), reason=str(error))
        await asyncio.sleep(seconds)

    async def _wait_after_answer(
        self, request: Request, headers: Mapping[str, str], failure: ApiError, retries: Retries
    ) -> None:
        """Wait before the next try, or raise the failure when there is none."""
        if failure.code == 429:
            _log.info(
                "the API server sheds load",
                method=request.method,
                path=_bare(request.path),
                retry_after=failure.retry_after,
                flow_schema_uid=headers.get("X-Kubernetes-PF-FlowSchema-UID"),
            )
        seconds = retries.after_answer(failure, retry_after_of(headers))
        if seconds is None:
            raise failure
        self._metrics.retried(request.method, str(failure.code))
        await asyncio.sleep(seconds)


def _failure_of(status: int, headers: Mapping[str, str], body: bytes) -> ApiError:
    return error_of(status, body, retry_after=retry_after_of(headers))


async def _refusal_of(stream: Stream) -> bytes:
    body = bytearray()
    async for chunk in stream.chunks():
        body += chunk
        if len(body) >= _REFUSAL_LIMIT:
            break
    return bytes(body)


def _bare(path: str) -> str:
    return path.partition("?")[0]
