"""How an informer fares: when it last heard of the server, what is wrong now, and whether the kind is there at all.

Troubles are told when they begin, change and end, not every time that they are met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from ktrainer.client.errors import TransportError
from ktrainer.kube.errors import ApiError, Expired, Forbidden, NotFound, Unauthorized
from ktrainer.machinery.cache.record import Refusal

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.cache.record import InformerRecord

_log = structlog.get_logger(__name__)

_REFUSALS: tuple[tuple[type[ApiError], Refusal], ...] = (
    (Unauthorized, Refusal.UNAUTHORIZED),
    (Forbidden, Refusal.FORBIDDEN),
    (NotFound, Refusal.NOT_FOUND),
)


def refusal_of(error: Exception) -> Refusal | None:
    """Whether an error will come again until somebody changes permissions, credentials or definitions."""
    return next((refusal for kind, refusal in _REFUSALS if isinstance(error, kind)), None)


class Vitals:
    """The state of one informer's connection to its server."""

    def __init__(self, name: str, record: InformerRecord, clock: Clock) -> None:
        self._name = name
        self._record = record
        self._clock = clock
        self._trouble: tuple[type[Exception], int] | None = None
        """The kind of the present trouble, of which the log knows."""
        self.last_error: str | None = None
        """What went wrong last; None while all is well."""
        self.last_activity_at = clock.monotonic()
        """When the server last said something, in monotonic seconds; at first, when we began."""
        self.absent_at: float | None = None
        """When the server last said that it does not know the kind, in monotonic seconds."""
        self.absent_since: float | None = None
        """When it first said so, of the times in a row; None where anything else has happened since."""
        self.unreachable_at: float | None = None
        """When the server last could not be reached, in monotonic seconds."""

    @property
    def is_absent(self) -> bool:
        """Whether the server does not know the kind, as far as we know."""
        return self._record.refusal is Refusal.NOT_FOUND

    @property
    def is_unreachable(self) -> bool:
        """Whether the server cannot be reached, as far as we know."""
        return self._record.is_unreachable

    def heard(self) -> None:
        """The server said something."""
        self.last_activity_at = self._clock.monotonic()
        self._record.is_unreachable = False

    def failed(self, error: Exception) -> None:
        """List or watch went wrong. That a version expired is routine and no trouble."""
        self._record.is_unreachable = isinstance(error, TransportError)
        if isinstance(error, Expired):
            return
        self.last_error = f"{type(error).__name__}: {error}"
        self._record.refusal = refusal_of(error)
        if self.is_absent:
            self.absent_at = self._clock.monotonic()
            self.absent_since = self.absent_at if self.absent_since is None else self.absent_since
        else:
            self.absent_since = None
        if self.is_unreachable:
            self.unreachable_at = self._clock.monotonic()
        trouble = (type(error), error.code if isinstance(error, ApiError) else 0)
        if trouble == self._trouble:
            return
        self._trouble = trouble
        if self.is_absent:
            _log.warning("the server does not know the kind; waiting for it", informer=self._name)
        else:
            _log.warning("cannot list or watch; trying again", informer=self._name, error=self.last_error)

    def works(self) -> None:
        """List or watch works."""
        self.last_error = None
        self._record.refusal = None
        self.absent_since = None
        if self._trouble is not None:
            self._trouble = None
            _log.info("list and watch work again", informer=self._name)
