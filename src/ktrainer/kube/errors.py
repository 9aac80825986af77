"""What an API server answers instead of success, as exceptions, from a Status object or from whatever else came.

    ApiError                  any other answer, such as 406, 415 or 502
    ├── BadRequest            400   will not heal by itself
    ├── Unauthorized          401
    ├── Forbidden             403   will not heal by itself; quota and terminating namespaces, too
    ├── NotFound              404
    ├── MethodNotSupported    405
    ├── AlreadyExists         409
    ├── Conflict              409   a stale resourceVersion or uid, or a field that another manager owns
    ├── Expired               410   a resourceVersion or continue token that is too old
    ├── RequestTooLarge       413   will not heal by itself
    ├── Invalid               422   will not heal by itself
    ├── TooManyRequests       429
    ├── InternalError         500
    ├── ServerTimeout         500   the operation did not finish in time; it may have happened
    ├── ServiceUnavailable    503
    └── Timeout               504

Failures to get an answer at all are not here; they belong to the package that talks to servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import orjson

_TEXT_LIMIT = 2048
"""Bytes kept of an answer that is no Status, such as a proxy's HTML page."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One entry of a Status' `details.causes`."""

    reason: str = ""
    message: str = ""
    field: str = ""


@dataclass(frozen=True, slots=True)
class Details:
    """A Status' `details`: which object the error is about, and why."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0


_NO_DETAILS = Details()


class ApiError(Exception):
    """An answer other than success."""

    is_permanent: ClassVar[bool] = False
    """Whether the same request will fail again until somebody changes something, so that retrying soon is a waste."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Details = _NO_DETAILS,
        *,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(code, reason, message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after = retry_after
        """Seconds that the server asks to wait before the next try, if it does."""

    def __str__(self) -> str:
        return f"{self.code} {self.reason}: {self.message}" if self.reason else f"{self.code}: {self.message}"

    def has_cause(self, reason: str) -> bool:
        """Whether the server named this reason among the causes."""
        return any(cause.reason == reason for cause in self.details.causes)

    @property
    def namespace_terminating(self) -> bool:
        """Whether a create was refused because its namespace is being deleted: not worth a word, all will go."""
        return self.has_cause("NamespaceTerminating")


class BadRequest(ApiError):
    """The server could not make sense of the request."""

    is_permanent = True


class Unauthorized(ApiError):
    """The credentials are missing, wrong or out of date."""


class Forbidden(ApiError):
    """Authorization or admission refused."""

    is_permanent = True


class NotFound(ApiError):
    """There is no such object, or no such resource at all."""


class MethodNotSupported(ApiError):
    """The resource does not offer this verb."""


class AlreadyExists(ApiError):
    """A create met an object of the same name."""


class Conflict(ApiError):
    """A precondition failed, or another manager owns a field that was applied."""


class Expired(ApiError):
    """The resourceVersion or continue token is too old (reasons Expired and Gone): list anew."""


class RequestTooLarge(ApiError):
    """The body is larger than the server takes."""

    is_permanent = True


class Invalid(ApiError):
    """The object failed validation; the causes name the fields."""

    is_permanent = True


class TooManyRequests(ApiError):
    """The server sheds load."""


class InternalError(ApiError):
    """The server failed."""


class ServerTimeout(ApiError):
    """The server gave up on the operation, which may yet have happened."""


class ServiceUnavailable(ApiError):
    """The server, or one that it relies on, does not serve now."""


class Timeout(ApiError):
    """The request did not finish within its time."""

    @property
    def resource_version_too_large(self) -> bool:
        """Whether the server has not yet seen the resourceVersion that was asked for."""
        return self.has_cause("ResourceVersionTooLarge") or "Too large resource version" in self.message


_BY_REASON: Mapping[str, type[ApiError]] = {
    "AlreadyExists": AlreadyExists,
    "BadRequest": BadRequest,
    "Conflict": Conflict,
    "Expired": Expired,
    "Forbidden": Forbidden,
    "Gone": Expired,
    "InternalError": InternalError,
    "Invalid": Invalid,
    "MethodNotAllowed": MethodNotSupported,
    "NotFound": NotFound,
    "RequestEntityTooLarge": RequestTooLarge,
    "ServerTimeout": ServerTimeout,
    "ServiceUnavailable": ServiceUnavailable,
    "Timeout": Timeout,
    "TooManyRequests": TooManyRequests,
    "Unauthorized": Unauthorized,
}

_BY_CODE: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotSupported,
    409: Conflict,
    410: Expired,
    413: RequestTooLarge,
    422: Invalid,
    429: TooManyRequests,
    500: InternalError,
    503: ServiceUnavailable,
    504: Timeout,
}


def error_of(code: int, body: bytes, *, retry_after: float | None = None) -> ApiError:
    """Build the error that an answer means; never raises, whatever the body holds.

    `retry_after` is the value of the answer's header in seconds, which beats the one inside a Status.
    """
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return _build_error(code, status, retry_after)
    message = body[:_TEXT_LIMIT].decode(errors="ignore").strip() or "the server gave no explanation"
    return _BY_CODE.get(code, ApiError)(code, "", message, retry_after=retry_after)


def status_error_of(status: Mapping[str, object]) -> ApiError:
    """Build the error that a Status means where no HTTP code tells, as in an ERROR event of a watch; never raises."""
    return _build_error(_int(status.get("code")), status, None)


def _build_error(code: int, status: Mapping[str, object], retry_after: float | None) -> ApiError:
    reason = _str(status.get("reason"))
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    details = _details_of(status.get("details"))
    if retry_after is None and details.retry_after_seconds > 0:
        retry_after = float(details.retry_after_seconds)
    message = _str(status.get("message")) or "the server gave no explanation"
    return kind(code, reason, message, details, retry_after=retry_after)


def _details_of(value: object) -> Details:
    if not isinstance(value, Mapping):
        return _NO_DETAILS
    causes = value.get("causes")
    return Details(
        name=_str(value.get("name")),
        group=_str(value.get("group")),
        kind=_str(value.get("kind")),
        uid=_str(value.get("uid")),
        causes=tuple(
            Cause(_str(cause.get("reason")), _str(cause.get("message")), _str(cause.get("field")))
            for cause in (causes if isinstance(causes, list) else ())
            if isinstance(cause, Mapping)
        ),
        retry_after_seconds=_int(value.get("retryAfterSeconds")),
    )


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""


def _int(value: object) -> int:
    # Larger ones are no codes and no times, and do not fit into a float.
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else 0
