"""Reviews: questions to the API server about whose token it is and what somebody may do, and answers remembered.

Fails closed: when the API server cannot be asked there is no answer, and everybody gets 500. Tokens are neither kept
nor logged: answers are remembered under the hash of the token.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import orjson
import structlog

from ktrainer.aio.backoff import Backoff, BackoffPolicy
from ktrainer.kube.access import Access
from ktrainer.kube.errors import ApiError
from ktrainer.kube.identity import Resource

if TYPE_CHECKING:
    from collections.abc import Hashable
    from random import Random

    from ktrainer.aio.clock import Clock

_log = structlog.get_logger(__name__)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS = (Access(TOKEN_REVIEWS, ("create",)),)

TOKEN_SECONDS = 60.0
"""How long it is remembered whose token it is, or that it is nobody's."""

REVIEW_SECONDS = 10.0
"""How long one review may take, all tries included."""

TRIES = 5
RETRIES = BackoffPolicy(initial_seconds=0.5, factor=1.5, jitter=0.2)
"""How a review is tried again when the API server fails."""

MAX_REVIEWS = 4
"""Reviews under way at a time: strangers must not be able to make us flood the API server."""

MAX_REMEMBERED = 1024
"""Answers that are remembered; beyond that the oldest are forgotten."""

V = TypeVar("V")


class Refused(Exception):
    """A request that may not pass."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        """The HTTP status to answer with."""


class Reviewer(Protocol):
    """A client for reviews; must not be fenced, as every replica is asked."""

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create the review and return it with its verdict."""
        ...


@dataclass(frozen=True, slots=True)
class User:
    """Whose token it is."""

    name: str
    uid: str
    groups: tuple[str, ...]
    extra: bytes
    """As JSON, so that users can be compared."""


class Memory(Generic[V]):
    """Answers that are true for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[Hashable, tuple[float, V]] = {}
        """Each with the time until which it holds, oldest first."""

    def get(self, key: Hashable) -> V | None:
        """The answer, if it still holds."""
        until, answer = self._answers.get(key, (0.0, None))
        return answer if self._clock.monotonic() < until else None

    def put(self, key: Hashable, answer: V, seconds: float) -> None:
        """Remember an answer for so long."""
        self._answers.pop(key, None)
        while len(self._answers) >= MAX_REMEMBERED:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock.monotonic() + seconds, answer)


class Reviews:
    """Asks the API server, and again where it fails for a moment."""

    def __init__(self, reviewer: Reviewer, clock: Clock, random: Random) -> None:
        self._reviewer = reviewer
        self._clock = clock
        self._random = random
        self._known: Memory[User] = Memory(clock)
        self._strange: Memory[bool] = Memory(clock)
        """Tokens that are nobody's; apart, so that strangers cannot make us forget whom we know."""
        self._slots = asyncio.Semaphore(MAX_REVIEWS)

    async def user_of(self, token: str, audience: str = "") -> User | None:
        """Whose token it is, for this audience where one is given; none for nobody's. Raises Refused."""
        key = (hashlib.sha256(token.encode()).digest(), audience)
        known = self._known.get(key)
        if known is not None or self._strange.get(key):
            return known
        spec = {"token": token, "audiences": [audience]} if audience else {"token": token}
        user = _user_of(await self.ask(TOKEN_REVIEWS, spec), audience)
        if user is None:
            self._strange.put(key, True, TOKEN_SECONDS)
        else:
            self._known.put(key, user, TOKEN_SECONDS)
        return user

    async def ask(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        """Return the status of a review; raises Refused when there is none to be had."""
        body = orjson.dumps({"apiVersion": resource.api_version, "kind": resource.kind, "spec": spec})
        backoff = Backoff(RETRIES, self._clock, self._random)
        try:
            async with asyncio.timeout(REVIEW_SECONDS), self._slots:
                for _ in range(TRIES - 1):
                    try:
                        return _status_of(await self._reviewer.create(resource, "", body))
                    except Exception as error:  # whatever it is, nobody passes before an answer is here
                        if isinstance(error, ApiError) and error.is_permanent:
                            raise
                    await asyncio.sleep(backoff.next_delay())
                return _status_of(await self._reviewer.create(resource, "", body))
        except Exception as error:  # fails closed; the text of the error might quote the request and so the token
            _log.warning("review failed", review=resource.kind, error=type(error).__name__)
            raise Refused(500, "the API server cannot be asked") from None


def bearer_token_of(authorization: str | None) -> str:
    """The token in an `Authorization` header; empty where there is none that could be one."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.isascii() else ""


def _status_of(body: bytes) -> dict[str, Any]:
    status = orjson.loads(body).get("status")
    if not isinstance(status, dict):
        raise TypeError("a review without status")
    return status


def _user_of(status: dict[str, Any], audience: str) -> User | None:
    user, audiences = status.get("user"), status.get("audiences")
    if status.get("authenticated") is not True or not isinstance(user, dict):
        return None
    # An authenticator that knows nothing of audiences names none, and its word is not enough then.
    if audience and not (isinstance(audiences, list) and audience in audiences):
        return None
    name = user.get("username")
    if not isinstance(name, str) or name in {"", "system:anonymous"}:
        return None
    groups, extra = user.get("groups"), user.get("extra")
    return User(
        name=name,
        uid=str(user.get("uid") or ""),
        groups=tuple(str(group) for group in groups) if isinstance(groups, list) else (),
        extra=orjson.dumps(extra if isinstance(extra, dict) else {}, option=orjson.OPT_SORT_KEYS),
    )
