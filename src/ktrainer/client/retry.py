"""Whether a request that failed is sent again by the client itself, and when. Decisions only; the caller waits.

The server decides first: with `Retry-After` it says that the request was not carried out, whatever the verb. Without an
answer only requests that can do no harm twice are repeated. All else is for the caller, who knows what it means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.client.errors import ConnectionLost
from ktrainer.kube.errors import Timeout

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from ktrainer.client.errors import TransportError
    from ktrainer.kube.errors import ApiError

MAX_TRIES = 10
"""How often one request is sent at most."""

LOST_SECONDS = 1.0
"""The wait after a connection was lost."""

RETRY_AFTER_MAX_SECONDS = 60.0
"""The longest wait that is spent inside a request. Who asks for more, as a proxy under maintenance may for an hour, is
left to the caller, who has delays of his own and can do something else meanwhile."""

JITTER = 0.1
"""A wait of d is drawn from [d, 1.1 d): those who were sent away together shall not come back together."""


class Retries:
    """The tries of one request.

    `repeatable` says that the request does no harm if it is carried out twice. A server that asks for a longer wait
    than `max_wait_seconds` is not waited for.
    """

    def __init__(self, *, repeatable: bool, random: Random, max_wait_seconds: float = RETRY_AFTER_MAX_SECONDS) -> None:
        self._repeatable = repeatable
        self._random = random
        self._max_wait_seconds = max_wait_seconds
        self._tries = 0
        """Tries that have failed."""
        self._has_reconnected = False
        """Whether a try has been repeated at once on another connection, which is done once only."""

    def after_answer(self, failure: ApiError, retry_after: float | None) -> float | None:
        """Seconds to wait before the request is sent again after such an answer; None gives it to the caller."""
        self._tries += 1
        if self._tries >= MAX_TRIES or (failure.code != 429 and failure.code < 500):
            return None
        if retry_after is None or retry_after > self._max_wait_seconds:
            return None
        if isinstance(failure, Timeout) and failure.resource_version_too_large:
            # The server has waited for the version already. If it was restored from a backup it will never have it,
            # and only the caller can ask for another.
            return None
        return self._jittered(retry_after)

    def after_error(self, error: TransportError) -> float | None:
        """Seconds to wait before the request is sent again after such a failure; None gives it to the caller."""
        self._tries += 1
        if self._tries >= MAX_TRIES or not isinstance(error, ConnectionLost):
            return None
        if not (self._repeatable or not error.sent):
            return None
        if error.reused and not self._has_reconnected:
            self._has_reconnected = True
            return 0.0
        return self._jittered(LOST_SECONDS)

    def _jittered(self, seconds: float) -> float:
        return seconds * (1 + JITTER * self._random.random())


def retry_after_of(headers: Mapping[str, str]) -> float | None:
    """The seconds in a `Retry-After` header; None where it is missing, or a date, which our clock may not match."""
    value = headers.get("Retry-After")
    return float(value) if value is not None and value.isascii() and value.isdigit() else None
