"""What is left to do for a TrainJob that has finished: clean up, complete its status, and delete it when it is time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.controllers.trainjob.conditions import end_of, state_of
from ktrainer.controllers.trainjob.reading import read_trainjob, readable_part
from ktrainer.controllers.trainjob.status import settled_status
from ktrainer.controllers.trainjob.turn import next_turn
from ktrainer.machinery.control.reconcile import Result, RetryableError

if TYPE_CHECKING:
    from ktrainer.client.servertime import ServerTime
    from ktrainer.controllers.trainjob.diagnosis import Diagnosis
    from ktrainer.controllers.trainjob.finisher import Finisher
    from ktrainer.controllers.trainjob.glance import Glance
    from ktrainer.controllers.trainjob.publisher import Publisher
    from ktrainer.kube.conditions import Condition
    from ktrainer.machinery.cache.objects import CachedObject


class Aftermath:
    """Follows what becomes of TrainJobs after their end."""

    def __init__(self, finisher: Finisher, diagnosis: Diagnosis, publisher: Publisher, server_time: ServerTime) -> None:
        self._finisher = finisher
        self._diagnosis = diagnosis
        self._publisher = publisher
        self._server_time = server_time

    async def follow(self, cached: CachedObject, glance: Glance, end: Condition) -> Result:
        """Do what is left; raises RetryableError where some of it is owed."""
        meta, trouble = cached.metadata, ""
        try:
            await self._finisher.clean(meta, end)
        except RetryableError as error:
            trouble = str(error)
        if await self._settle(cached, glance, end):
            # Its next turn comes with what was just written.
            return Result()
        if self._diagnosis.is_owed(meta.key):
            trouble = trouble or "it cannot be told what failed first"
        remaining = await self._finisher.time_to_live(meta, glance, end, self._server_time.now())
        if meta.is_deleting:
            remaining = None
        elif remaining is not None and remaining <= 0:
            # Whatever is still owed goes with it.
            await self._finisher.expire(meta)
            return Result()
        if trouble:
            raise RetryableError(trouble, requeue_after=next_turn(remaining).requeue_after)
        return next_turn(remaining)

    async def _settle(self, cached: CachedObject, glance: Glance, end: Condition) -> bool:
        """Write what the status still lacks; return whether that was anything."""
        meta = cached.metadata
        # Somebody else may have ended it, or the original did.
        is_unsettled = glance.status.state != state_of([end], suspend=False) or glance.status.completion_time is None
        is_behind = glance.status.observed_generation != meta.generation
        is_owed = self._diagnosis.is_owed(meta.key)
        # Some are only stopped once others have ended.
        jobs = await self._finisher.jobs_of(meta) if glance.has_jobs_left else ()
        if not (is_unsettled or is_behind or is_owed or jobs):
            return False
        trainjob = read_trainjob(cached)
        if isinstance(trainjob, list):
            trainjob = readable_part(cached)
        if end_of(trainjob.status.conditions) is None:
            # Whatever we wrote would take the end back.
            return False
        failure = await self._diagnosis.fetch(meta) if is_owed else None
        status = settled_status(trainjob, self._server_time.now(), failure, jobs)
        await self._publisher.publish(meta, trainjob.status, status)
        return status != trainjob.status
