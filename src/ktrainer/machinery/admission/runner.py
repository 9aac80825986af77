"""Runs one handler for one review, within its deadline and within what the process can bear. Knows no HTTP.

Whatever comes in and whatever a handler does, an answer comes out that an API server accepts, and a failure is a
refusal. Only cancellation passes through.
"""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from typing import TYPE_CHECKING

import structlog

from ktrainer.aio.cancellation import is_cancelled
from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Hook, errored
from ktrainer.machinery.admission.review import BadReview, decode_review, encode_review, find_flaw, uid_of

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from ktrainer.machinery.admission.metrics import WebhookMetrics

_log = structlog.get_logger(__name__)

MAX_CONCURRENT = 128
"""Handlers that run at a time; the others wait until one has ended or their deadline has passed."""

LARGE_BODY_BYTES = 256 * 1024
"""A larger body takes so long to decode that it holds up the event loop."""

MAX_LARGE = 2
"""Reviews with large bodies that are decoded and handled at a time."""


class FlawedAnswer(Exception):
    """A handler returned what an API server would not accept."""


class AdmissionRunner:
    """The handlers of one server share its limits."""

    def __init__(self, metrics: WebhookMetrics) -> None:
        self._metrics = metrics
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._large_slots = asyncio.Semaphore(MAX_LARGE)

    async def answer(self, hook: Hook, body: bytes, deadline: float) -> bytes:
        """Return the review that answers the one in `body`, at the latest when the loop's clock shows `deadline`."""
        request: AdmissionRequest | None = None
        scope = asyncio.timeout_at(deadline)
        try:
            async with scope, self._large_slot(body), self._slots:
                request = decode_review(body)
                response = await hook.handle(request)
            if flaw := find_flaw(response, hook, request):
                raise FlawedAnswer(flaw)
            review = encode_review(request.uid, response)
        except BadReview as error:
            _log.warning("bad admission review", webhook=hook.path, problem=str(error))
            return encode_review(uid_of(body), errored(400, "BadRequest", str(error)))
        except (Exception, asyncio.CancelledError) as error:
            if is_cancelled(error):
                raise
            is_late = scope.expired() and isinstance(error, TimeoutError)
            return encode_review(uid_of(body), self._failure(hook, request, None if is_late else error))
        _log_verdict(hook, request, response)
        return review

    def _large_slot(self, body: bytes) -> AbstractAsyncContextManager[None]:
        return self._large_slots if len(body) > LARGE_BODY_BYTES else contextlib.nullcontext()

    def _failure(self, hook: Hook, request: AdmissionRequest | None, error: BaseException | None) -> AdmissionResponse:
        facts = {"webhook": hook.path} if request is None else _facts_of(hook, request)
        if error is None:
            _log.warning("admission took too long", **facts)
            return errored(500, "ServerTimeout", "the webhook did not finish in time")
        self._metrics.panics.inc()
        # The text of the error stays out of log and answer: it may quote the object, and that may hold secrets.
        name = str(error) if isinstance(error, FlawedAnswer) else type(error).__name__
        _log.error("admission failed", error=name, stack="".join(traceback.format_tb(error.__traceback__)), **facts)
        return errored(500, "InternalError", f"the webhook failed: {name}; its log tells more")


def _log_verdict(hook: Hook, request: AdmissionRequest, response: AdmissionResponse) -> None:
    if response.is_allowed:
        _log.debug("admitted", patched=bool(response.patch), **_facts_of(hook, request))
    else:
        _log.info("refused", code=response.code, reason=response.reason, **_facts_of(hook, request))


def _facts_of(hook: Hook, request: AdmissionRequest) -> dict[str, object]:
    """What a log line may tell of a request: who did what to which object, but nothing of what is inside it."""
    return {
        "webhook": hook.path,
        "uid": request.uid,
        "kind": str(request.kind.gvk),
        "object": str(request.key),
        "operation": request.operation.value,
        "user": request.user_info.username,
        "dry_run": request.dry_run,
    }
