"""What is left to do for a TrainJob that has finished: very little, and without asking the API server for anything.

Its gang is dissolved, so that the queue has its share back; the JobSet of one that exceeded its deadline is deleted,
for which the failure had to be stored first; and some time later the TrainJob itself is deleted, if it says so.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import COSCHEDULING_POD_GROUPS, JOBSETS, TRAINJOBS, VOLCANO_POD_GROUPS
from ktrainer.api.trainjob import RuntimeRef
from ktrainer.api.trainjobstatus import ConditionType, Reason
from ktrainer.client.errors import TransportError
from ktrainer.controllers.trainjob.ttl import seconds_to_live
from ktrainer.framework.component import is_controlled
from ktrainer.kube.access import Access
from ktrainer.kube.errors import ApiError, Conflict, NotFound
from ktrainer.kube.timestamp import is_time
from ktrainer.machinery.control.reconcile import RetryableError, Stale
from ktrainer.plugins.jobset.status import status_of
from ktrainer.runtime.errors import UnsupportedRuntime

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from ktrainer.api.trainjobstatus import JobStatus
    from ktrainer.client.client import Client
    from ktrainer.controllers.trainjob.glance import Glance
    from ktrainer.framework.reader import Reader
    from ktrainer.framework.watch import Watch
    from ktrainer.kube.conditions import Condition
    from ktrainer.kube.identity import ObjectKey, Resource
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.runtime.registry import Runtimes

ACCESS: Final = tuple(
    Access(resource, ("delete",)) for resource in (TRAINJOBS, JOBSETS, COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS)
)

_GANGS: Final = (COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS)


class Finisher:
    """Does what is left to do."""

    def __init__(self, client: Client, reader: Reader, watches: Mapping[Resource, Watch], runtimes: Runtimes) -> None:
        self._client = client
        self._reader = reader
        self._gangs = tuple(resource for resource in _GANGS if resource in watches)
        self._runtimes = runtimes
        self._deleted: dict[tuple[Resource, ObjectKey], str] = {}
        """The uids of objects that are deleted, but still in the cache."""

    async def clean(self, meta: ObjectMeta, end: Condition) -> None:
        """Delete what must not outlive the end, as far as possible; raises RetryableError where something is left."""
        is_late = end.type == ConditionType.FAILED and end.reason == Reason.DEADLINE_EXCEEDED
        errors: list[ApiError | TransportError] = []
        # What trains goes before what it trains by.
        for resource in (JOBSETS, *self._gangs) if is_late else self._gangs:
            try:
                await self._delete(resource, meta)
            except (ApiError, TransportError) as error:
                errors.append(error)
        if errors:
            told = "; ".join(map(str, errors))
            raise RetryableError(f"what must not outlive the end cannot be deleted: {told}") from errors[0]

    async def _delete(self, resource: Resource, meta: ObjectMeta) -> None:
        present = await self._reader.fetch(resource, meta.namespace, meta.name)
        if present is None:
            self._deleted.pop((resource, meta.key), None)
            return
        metadata = present["metadata"]
        uid = metadata["uid"]
        is_going = "deletionTimestamp" in metadata or self._deleted.get((resource, meta.key)) == uid
        if is_going or not is_controlled(present, meta.uid):
            return
        with contextlib.suppress(NotFound):
            await self._client.delete(resource, meta.key, uid=uid)
        self._deleted[resource, meta.key] = uid

    async def jobs_of(self, meta: ObjectMeta) -> tuple[JobStatus, ...]:
        """How the jobs of a TrainJob are doing, as the cache has it; none where its JobSet is gone."""
        present = await self._reader.fetch(JOBSETS, meta.namespace, meta.name)
        return status_of(present).jobs if present and is_controlled(present, meta.uid) else ()

    async def time_to_live(self, meta: ObjectMeta, glance: Glance, end: Condition, now: datetime) -> float | None:
        """How long a TrainJob stays, not positive when its time is up; none where it stays for ever."""
        seconds = glance.spec.ttl_seconds_after_finished
        if seconds is None:
            seconds = await self._default_ttl(meta, glance)
        finished_at = next(filter(is_time, (glance.status.completion_time, end.last_transition_time)), None)
        return seconds_to_live(finished_at, seconds, now)

    async def expire(self, meta: ObjectMeta) -> None:
        """Delete a TrainJob; raises Stale where it has changed meanwhile, and what the client raises."""
        try:
            await self._client.delete(TRAINJOBS, meta.key, uid=meta.uid, resource_version=meta.resource_version)
        except NotFound:
            return
        except Conflict as error:
            raise Stale(f"the TrainJob has changed meanwhile: {error}") from error

    async def _default_ttl(self, meta: ObjectMeta, glance: Glance) -> int | None:
        ref = glance.spec.runtime_ref
        if not glance.status.runtime_digest:
            return None
        try:
            runtime = self._runtimes.of(RuntimeRef(name=ref.name, api_group=ref.api_group, kind=ref.kind))
        except UnsupportedRuntime:
            return None
        return (await runtime.kept_policy(meta, glance.status.runtime_digest)).ttl_seconds_after_finished

    def forget(self, key: ObjectKey) -> None:
        """Forget a TrainJob that is gone."""
        for resource in (*self._gangs, JOBSETS):
            self._deleted.pop((resource, key), None)
