"""Who may report the progress of a TrainJob: its own pods, and nobody else.

A token must be for this TrainJob (its audience) and bound to a pod; but every pod of the namespace can ask for such a
token, so the pod is looked at, too. That a pod is part of a TrainJob never changes and is remembered for long; that
its token is good only for a minute, and with the pod it ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec
import orjson

from ktrainer.api.labels import JOBSET_NAME, JOBSET_UID
from ktrainer.api.progress import audience_of
from ktrainer.api.resources import JOBSETS, PODS
from ktrainer.kube.access import Access
from ktrainer.kube.errors import NotFound
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.kube.owners import is_controlled_by
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.serving.reviews import Memory, Refused, bearer_token_of
from ktrainer.statusserver.refusal import failed, forbidden

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.machinery.serving.reviews import Reviews, User
    from ktrainer.statusserver.report import Target
    from ktrainer.statusserver.trainjobs import Getter

ACCESS: Final = (Access(PODS, ("get",)), Access(JOBSETS, ("get",)))

MEMBER_SECONDS: Final = 600.0
"""How long it is remembered that a pod is part of a TrainJob."""

_POD_NAME: Final = "authentication.kubernetes.io/pod-name"
_POD_UID: Final = "authentication.kubernetes.io/pod-uid"


@dataclass(frozen=True, slots=True)
class Reporter:
    """The pod that a token is bound to."""

    key: ObjectKey
    uid: str


class ReportAuthorizer:
    """Decides on who reports. Fails closed."""

    def __init__(self, reviews: Reviews, getter: Getter, clock: Clock) -> None:
        self._reviews = reviews
        self._getter = getter
        self._members: Memory[bool] = Memory(clock)
        """By uids of pod and TrainJob; only those that are."""

    async def recognise(self, authorization: str | None, key: ObjectKey) -> Reporter:
        """The pod whose token for this TrainJob is in the header; raises Refusal."""
        token = bearer_token_of(authorization)
        if not token:
            raise forbidden("there is no bearer token")
        try:
            user = await self._reviews.user_of(token, audience_of(key))
        except Refused as refused:
            raise failed(str(refused)) from None
        reporter = _reporter_of(user, key.namespace) if user is not None else None
        if reporter is None:
            raise forbidden(f"the token is not that of a pod in {key.namespace}, for {audience_of(key)}")
        return reporter

    async def check(self, reporter: Reporter, target: Target) -> None:
        """Raise Refusal unless the pod is part of the TrainJob; ApiError and TransportError where that is not known."""
        member = (reporter.uid, target.uid)
        if self._members.get(member):
            return
        if not await self._is_member(reporter, target):
            raise forbidden(f"the pod {reporter.key} is not part of the TrainJob {target.key}")
        self._members.put(member, True, MEMBER_SECONDS)

    async def _is_member(self, reporter: Reporter, target: Target) -> bool:
        pod = await self._fetch(PODS, reporter.key)
        if pod is None or pod.uid != reporter.uid or pod.labels.get(JOBSET_NAME) != target.key.name:
            return False
        jobset = await self._fetch(JOBSETS, target.key)
        return jobset is not None and pod.labels.get(JOBSET_UID) == jobset.uid and is_controlled_by(jobset, target.uid)

    async def _fetch(self, resource: Resource, key: ObjectKey) -> ObjectMeta | None:
        try:
            body = await self._getter.get(resource, key)
        except NotFound:
            return None
        return msgspec.json.decode(body, type=CachedObject).metadata


def _reporter_of(user: User, namespace: str) -> Reporter | None:
    """The pod of a service account in this namespace; none where the token is of anybody else."""
    if not user.name.startswith(f"system:serviceaccount:{namespace}:"):
        return None
    extra = orjson.loads(user.extra)
    names, uids = extra.get(_POD_NAME), extra.get(_POD_UID)
    if not (isinstance(names, list) and isinstance(uids, list) and len(names) == len(uids) == 1):
        return None
    name, uid = names[0], uids[0]
    return Reporter(ObjectKey(namespace, name), uid) if name and uid else None
