"""Who may scrape: asks the API server whose token it is (TokenReview) and what that one may do (SubjectAccessReview).

Fails closed: whoever cannot be recognised gets 401, who may not gets 403, and if the API server cannot be asked
everybody gets 500.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import structlog

from ktrainer.kube.access import Access
from ktrainer.kube.identity import Resource
from ktrainer.machinery.serving.reviews import Memory, Refused, Reviews, bearer_token_of

if TYPE_CHECKING:
    from random import Random

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.serving.reviews import Reviewer, User

_log = structlog.get_logger(__name__)

ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False)
ACCESS = (Access(ACCESS_REVIEWS, ("create",)),)

ALLOW_SECONDS = 300.0
DENY_SECONDS = 30.0
"""How long it is remembered what somebody may do, and may not do."""


class ScrapeAuthorizer:
    """Lets through who has a valid token and may `get` the path."""

    def __init__(self, reviewer: Reviewer, clock: Clock, random: Random) -> None:
        self._reviews = Reviews(reviewer, clock, random)
        self._verdicts: Memory[bool] = Memory(clock)
        """By user and path."""

    async def check(self, authorization: str | None, path: str) -> None:
        """Raise Refused unless the bearer of this `Authorization` header may read this path."""
        token = bearer_token_of(authorization)
        if not token:
            raise Refused(401, "no bearer token")
        user = await self._reviews.user_of(token)
        if user is None:
            raise Refused(401, "not a valid token")
        if not await self._may_read(user, path):
            _log.info("scrape refused", user=user.name, path=path)
            raise Refused(403, "not allowed")

    async def _may_read(self, user: User, path: str) -> bool:
        allowed = self._verdicts.get((user, path))
        if allowed is None:
            spec = {
                "user": user.name,
                "uid": user.uid,
                "groups": user.groups,
                "extra": orjson.Fragment(user.extra),
                "nonResourceAttributes": {"path": path, "verb": "get"},
            }
            status = await self._reviews.ask(ACCESS_REVIEWS, spec)
            allowed = status.get("allowed") is True and status.get("denied") is not True
            self._verdicts.put((user, path), allowed, ALLOW_SECONDS if allowed else DENY_SECONDS)
        return allowed
