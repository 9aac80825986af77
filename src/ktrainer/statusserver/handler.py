"""Answers the requests of training pods. Neither tokens nor bodies are ever logged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson
import structlog
from aiohttp import web

from ktrainer.api.progress import key_of
from ktrainer.kube.errors import ApiError
from ktrainer.statusserver.refusal import Refusal, failed, no_such_trainjob, not_found, too_large, too_many
from ktrainer.statusserver.report import Target, parse_report
from ktrainer.statusserver.writer import check_standing

if TYPE_CHECKING:
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.statusserver.authorizer import ReportAuthorizer, Reporter
    from ktrainer.statusserver.callers import Callers
    from ktrainer.statusserver.desk import Desk
    from ktrainer.statusserver.metrics import ProgressMetrics
    from ktrainer.statusserver.trainjobs import Standing, TrainJobs

_log = structlog.get_logger(__name__)

MAX_BODY_BYTES: Final = 64 * 1024

READ_SECONDS: Final = 10.0
"""How long a client may take to send a body."""

ANSWER_SECONDS: Final = 10.0
"""How long we may take to answer once the body is there."""


@dataclass(frozen=True, slots=True)
class HandlerParts:
    """What answers are made with."""

    authorizer: ReportAuthorizer
    trainjobs: TrainJobs
    desk: Desk
    callers: Callers
    metrics: ProgressMetrics


class ProgressHandler:
    """Handles one request after the other, whatever comes."""

    def __init__(self, parts: HandlerParts) -> None:
        self._authorizer = parts.authorizer
        self._trainjobs = parts.trainjobs
        self._desk = parts.desk
        self._callers = parts.callers
        self._metrics = parts.metrics

    async def handle(self, request: web.BaseRequest) -> web.Response:
        """Take a report, or tell why not."""
        code = 499
        try:
            response = await self._answer(request)
            code = response.status
            return response
        finally:
            self._metrics.count_request(code)

    async def _answer(self, request: web.BaseRequest) -> web.Response:
        try:
            if not self._callers.admit(request.remote or ""):
                raise too_many("this client sends too many requests", 1)
            key = key_of(request.rel_url.raw_path)
            if key is None or request.method != "POST":
                raise not_found("progress is reported with POST at the path of a TrainJob's status")
            body = await _read(request)
            async with asyncio.timeout(ANSWER_SECONDS):
                payload = await self._take(request.headers.get("Authorization"), key, body)
            return web.Response(body=payload, content_type="application/json")
        except Refusal as refusal:
            return _response(refusal)
        except TimeoutError:
            return _response(failed("the report could not be taken in time"))
        except Exception as error:  # whatever it is, the pod gets an answer; the text of the error may quote the body
            code = error.code if isinstance(error, ApiError) else None
            _log.warning("progress report failed", error=type(error).__name__, code=code)
            return _response(failed("the report could not be taken; the log of the manager tells more"))

    async def _take(self, authorization: str | None, key: ObjectKey, body: bytes) -> bytes:
        reporter = await self._authorizer.recognise(authorization, key)
        standing = await self._standing_for(reporter, key)
        target = Target(key, standing.uid)
        report = parse_report(body)
        if report is None:
            return b"{}"
        check_standing(target, standing)
        await self._desk.submit(target, report)
        return orjson.dumps(report.payload())

    async def _standing_for(self, reporter: Reporter, key: ObjectKey) -> Standing:
        """The TrainJob that a pod is part of; raises Refusal where it is part of none of this name."""
        standing = await self._trainjobs.find(key)
        if standing is None:
            raise no_such_trainjob(key)
        try:
            await self._authorizer.check(reporter, Target(key, standing.uid))
        except Refusal:
            # A cache that is behind may still show a namesake that has gone.
            fresh = await self._trainjobs.fetch(key)
            if fresh is None or fresh.uid == standing.uid:
                raise
            await self._authorizer.check(reporter, Target(key, fresh.uid))
            return fresh
        return standing


async def _read(request: web.BaseRequest) -> bytes:
    if request.content_length is not None and request.content_length > MAX_BODY_BYTES:
        raise too_large(MAX_BODY_BYTES)
    body = bytearray()
    try:
        async with asyncio.timeout(READ_SECONDS):
            while chunk := await request.content.readany():
                body += chunk
                if len(body) > MAX_BODY_BYTES:
                    raise too_large(MAX_BODY_BYTES)
    except TimeoutError:
        raise Refusal(408, "Timeout", "the body did not come in time") from None
    return bytes(body)


def _response(refusal: Refusal) -> web.Response:
    response = web.Response(status=refusal.code, body=refusal.body(), content_type="application/json")
    if refusal.retry_after:
        response.headers["Retry-After"] = str(refusal.retry_after)
    if refusal.code in {408, 413}:
        # What is left of the body would be taken for the next request.
        response.force_close()
    return response
