"""What a training pod is told instead of success: a Status, as API servers answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from ktrainer.kube.fields import message_of

if TYPE_CHECKING:
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.kube.jsonvalue import JsonObject


class Refusal(Exception):
    """A report that is not taken."""

    def __init__(self, code: int, reason: str, message: str, errors: ErrorList | None = None) -> None:
        super().__init__(message)
        self.code = code
        """The HTTP status."""
        self.reason = reason
        self.retry_after = 0
        """Whole seconds after which it is worth trying again; 0 where that is not known."""
        self._errors = errors or []

    @property
    def is_ours(self) -> bool:
        """Whether it is our fault, or the API server's, and may be taken another time."""
        return self.code == 500

    def body(self) -> bytes:
        """The Status."""
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
            "code": self.code,
        }
        details: JsonObject = {}
        if self._errors:
            details["causes"] = [
                {"reason": error.kind.value, "message": error.body, "field": str(error.path)} for error in self._errors
            ]
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        return orjson.dumps({**status, "details": details} if details else status)


def forbidden(message: str) -> Refusal:
    """Who asks may not report this."""
    return Refusal(403, "Forbidden", message)


def not_found(message: str) -> Refusal:
    """There is nothing at this place."""
    return Refusal(404, "NotFound", message)


def no_such_trainjob(key: ObjectKey) -> Refusal:
    """There is no TrainJob of this name."""
    return not_found(f"there is no TrainJob {key}")


def finished(key: ObjectKey) -> Refusal:
    """The TrainJob has come to its end."""
    return Refusal(409, "Conflict", f"the TrainJob {key} has finished")


def too_large(limit: int) -> Refusal:
    """The body is too long."""
    return Refusal(413, "RequestEntityTooLarge", f"the body has more than {limit} bytes")


def invalid(errors: ErrorList) -> Refusal:
    """The report does not fit."""
    return Refusal(422, "Invalid", message_of(errors), errors)


def too_many(message: str, seconds: float) -> Refusal:
    """It is too early for another request."""
    refusal = Refusal(429, "TooManyRequests", message)
    refusal.retry_after = max(1, -int(-seconds // 1))
    return refusal


def failed(message: str) -> Refusal:
    """It is our fault, or the API server's."""
    return Refusal(500, "InternalError", message)
