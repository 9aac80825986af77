"""Who may scrape: asks the API server whose token it is (TokenReview) and what that one may do (SubjectAccessReview).

Fails closed: whoever cannot be recognised gets 401, who may not gets 403, and if the API server cannot be asked
everybody gets 500. Tokens are neither kept nor logged: answers are remembered under the hash of the token.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import orjson
import structlog

from ktrainer.aio.backoff import Backoff, BackoffPolicy
from ktrainer.kube.errors import ApiError
from ktrainer.kube.identity import Resource

if TYPE_CHECKING:
    from collections.abc import Hashable
    from random import Random

    from ktrainer.aio.clock import Clock

_log = structlog.get_logger(__name__)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)

TOKEN_SECONDS = 60.0
"""How long it is remembered whose token it is, or that it is nobody's."""

ALLOW_SECONDS = 300.0
DENY_SECONDS = 30.0
"""How long it is remembered what somebody may do, and may not do."""

REVIEW_SECONDS = 10.0
"""How long one review may take, all tries included."""

TRIES = 5
RETRIES = BackoffPolicy(initial_seconds=0.5, factor=1.5, jitter=0.2)
"""How a review is tried again when the API server fails."""

MAX_REVIEWS = 4
"""Reviews under way at a time: strangers must not be able to make us flood the API server."""

MAX_REMEMBERED = 1024
"""Answers that are remembered; beyond that the oldest are forgotten."""

_ANONYMOUS = "system:anonymous"

V = TypeVar("V")


class Refused(Exception):
    """A request that may not pass."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        """The HTTP status to answer with."""


class Reviewer(Protocol):
    """A client for reviews; must not be fenced, as every replica is scraped."""

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create the review and return it with its verdict."""
        ...


@dataclass(frozen=True, slots=True)
class _User:
    name: str
    uid: str
    groups: tuple[str, ...]
    extra: bytes
    """As JSON, so that users can be compared."""


class _Memory(Generic[V]):
    """Answers that are true for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._answers: dict[Hashable, tuple[float, V]] = {}
        """Each with the time until which it holds, oldest first."""

    def get(self, key: Hashable) -> V | None:
        until, answer = self._answers.get(key, (0.0, None))
        return answer if self._clock.monotonic() < until else None

    def put(self, key: Hashable, answer: V, seconds: float) -> None:
        self._answers.pop(key, None)
        while len(self._answers) >= MAX_REMEMBERED:
            del self._answers[next(iter(self._answers))]
        self._answers[key] = (self._clock.monotonic() + seconds, answer)


class ScrapeAuthorizer:
    """Lets through who has a valid token and may `get` the path."""

    def __init__(self, reviewer: Reviewer, clock: Clock, random: Random) -> None:
        self._reviewer = reviewer
        self._clock = clock
        self._random = random
        self._users: _Memory[tuple[_User | None]] = _Memory(clock)
        """By hash of the token; a tuple of None for a token that is nobody's."""
        self._verdicts: _Memory[bool] = _Memory(clock)
        """By user and path."""
        self._slots = asyncio.Semaphore(MAX_REVIEWS)

    async def check(self, authorization: str | None, path: str) -> None:
        """Raise Refused unless the bearer of this `Authorization` header may read this path."""
        scheme, _, token = (authorization or "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            raise Refused(401, "no bearer token")
        user = await self._user_of(token)
        if user is None or not user.name or user.name == _ANONYMOUS:
            raise Refused(401, "not a valid token")
        if not await self._may_read(user, path):
            _log.info("scrape refused", user=user.name, path=path)
            raise Refused(403, "not allowed")

    async def _user_of(self, token: str) -> _User | None:
        key = hashlib.sha256(token.encode()).digest()
        known = self._users.get(key)
        if known is None:
            status = await self._review(TOKEN_REVIEWS, {"token": token})
            known = (_parse_user(status.get("user")) if status.get("authenticated") is True else None,)
            self._users.put(key, known, TOKEN_SECONDS)
        return known[0]

    async def _may_read(self, user: _User, path: str) -> bool:
        allowed = self._verdicts.get((user, path))
        if allowed is None:
            spec = {
                "user": user.name,
                "uid": user.uid,
                "groups": user.groups,
                "extra": orjson.Fragment(user.extra),
                "nonResourceAttributes": {"path": path, "verb": "get"},
            }
            status = await self._review(ACCESS_REVIEWS, spec)
            allowed = status.get("allowed") is True and status.get("denied") is not True
            self._verdicts.put((user, path), allowed, ALLOW_SECONDS if allowed else DENY_SECONDS)
        return allowed

    async def _review(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
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


def _status_of(body: bytes) -> dict[str, Any]:
    status = orjson.loads(body).get("status")
    if not isinstance(status, dict):
        raise TypeError("a review without status")
    return status


def _parse_user(user: object) -> _User | None:
    if not isinstance(user, dict) or not isinstance(user.get("username"), str):
        return None
    groups, extra = user.get("groups"), user.get("extra")
    return _User(
        name=user["username"],
        uid=str(user.get("uid") or ""),
        groups=tuple(str(group) for group in groups) if isinstance(groups, list) else (),
        extra=orjson.dumps(extra if isinstance(extra, dict) else {}, option=orjson.OPT_SORT_KEYS),
    )
