"""Reconciles a TrainJob: plan, write what is missing, look at the workload, tell, and end it when it is time.

The shell around the pure decisions beside it. Everything is read from caches; the few live reads are where a cache
cannot know. Nothing that matters is kept in memory alone: a turn that is cut off anywhere is begun anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from ktrainer.api.trainjob import TRAINJOB_CONTROLLER
from ktrainer.api.trainjobstatus import ConditionType, Reason
from ktrainer.client.errors import TransportError
from ktrainer.controllers.trainjob.aftermath import Aftermath
from ktrainer.controllers.trainjob.brevity import restored
from ktrainer.controllers.trainjob.builder import stored_digest
from ktrainer.controllers.trainjob.conditions import end_of, failed_condition
from ktrainer.controllers.trainjob.ending import decide_end, time_left
from ktrainer.controllers.trainjob.glance import glance_at
from ktrainer.controllers.trainjob.reading import Malformed, read_trainjob, readable_part
from ktrainer.controllers.trainjob.status import Seen, build_status, is_held_or_freed
from ktrainer.controllers.trainjob.turn import next_turn
from ktrainer.controllers.trainjob.vanished import deletes_itself
from ktrainer.controllers.trainjob.verdict import READY, Verdict, previous_verdict, verdict_of, verdict_on
from ktrainer.framework.errors import PluginError
from ktrainer.kube.errors import ApiError
from ktrainer.machinery.control.outcome import wish_of
from ktrainer.machinery.control.reconcile import Result, RetryableError, Stale
from ktrainer.runtime.errors import UnsupportedRuntime

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.client.servertime import ServerTime
    from ktrainer.controllers.trainjob.applied import Applied
    from ktrainer.controllers.trainjob.builder import Builder, Survey
    from ktrainer.controllers.trainjob.departures import Departures
    from ktrainer.controllers.trainjob.diagnosis import Diagnosis
    from ktrainer.controllers.trainjob.events import Events
    from ktrainer.controllers.trainjob.finisher import Finisher
    from ktrainer.controllers.trainjob.publisher import Publisher
    from ktrainer.kube.conditions import Condition
    from ktrainer.kube.identity import ObjectKey, Resource
    from ktrainer.machinery.cache.objects import CachedObject
    from ktrainer.machinery.cache.reader import Reader
    from ktrainer.machinery.cache.written import WrittenVersions
    from ktrainer.runtime.registry import Runtimes

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerParts:
    """What the reconciler works with."""

    trainjobs: Reader[CachedObject]
    runtimes: Runtimes
    builder: Builder
    publisher: Publisher
    finisher: Finisher
    departures: Departures
    applied: Applied
    written: WrittenVersions
    version_of: Callable[[Resource], str]
    """The version that the caches of a resource have reached."""
    server_time: ServerTime
    diagnosis: Diagnosis
    events: Events


class TrainJobReconciler:
    """Reconciles TrainJobs."""

    def __init__(self, parts: ReconcilerParts) -> None:
        self._parts = parts
        self._aftermath = Aftermath(parts.finisher, parts.diagnosis, parts.publisher, parts.server_time)

    async def reconcile(self, key: ObjectKey) -> Result:
        """Do what there is to do for a TrainJob; one that is gone is a success."""
        cached = self._parts.trainjobs.get(key)
        if cached is None:
            self._forget(key)
            self._parts.finisher.forget(key)
            self._parts.diagnosis.forget(key, is_gone=True)
            return Result()
        meta, glance = cached.metadata, glance_at(cached)
        if glance and not glance.is_ours:
            return Result()
        if resource := self._parts.written.stale(key, meta.uid, self._parts.version_of):
            raise Stale(f"the cache of {resource.plural} does not show our last write yet")
        if glance and (end := glance.end):
            self._forget(key)
            return await self._aftermath.follow(cached, glance, end)
        read = read_trainjob(cached)
        trainjob, malformed = (readable_part(cached), Malformed(read)) if isinstance(read, list) else (read, None)
        if trainjob.spec.managed_by != TRAINJOB_CONTROLLER or end_of(trainjob.status.conditions):
            # At a glance, it could not be made out that it is somebody else's, or has finished.
            return Result()
        return await self._advance(trainjob, malformed)

    async def _advance(self, trainjob: TrainJob, malformed: Malformed | None = None) -> Result:
        """Take a TrainJob that has not finished one step further; one that is `malformed` is only followed."""
        try:
            runtime = self._parts.runtimes.of(trainjob.spec.runtime_ref)
        except UnsupportedRuntime as error:
            failed = failed_condition(trainjob, Reason.TRAINING_RUNTIME_NOT_SUPPORTED, str(error))
            return await self._tell(trainjob, Seen(verdict=Verdict(Reason.VALIDATION_REJECTED, str(error)), end=failed))
        survey = await self._parts.builder.survey(runtime, trainjob, malformed)
        workload, plan, trouble = survey.workload, survey.plan, survey.trouble
        if trainjob.metadata.is_deleting and workload is None:
            return Result()
        end = decide_end(trainjob, workload, plan, survey.defaults, self._parts.server_time.now())
        if end and end.reason == Reason.JOBSET_DELETED and not await self._parts.builder.may_have_ended(trainjob):
            end = None
        if end is not None:
            return await self._end(trainjob, survey, end)
        if plan is not None:
            plan, trouble = await self._parts.builder.build(runtime, trainjob, plan, workload)
        else:
            trouble = await self._parts.builder.hold(trainjob) or trouble
        if isinstance(trouble, ApiError) and trouble.namespace_terminating:
            return Result()
        known = verdict_on(plan) if plan else previous_verdict(restored(trainjob.status), READY)
        verdict = verdict_of(trouble) if trouble else known
        is_due = self._parts.diagnosis.is_due(trainjob.metadata.key, workload)
        failure = await self._parts.diagnosis.fetch(trainjob.metadata) if is_due else None
        seen = Seen(
            verdict=verdict,
            workload=workload,
            plan=plan,
            defaults=survey.defaults,
            digest=stored_digest(plan, is_written=trouble is None),
            first_failure=failure,
        )
        return await self._tell(trainjob, seen, trouble)

    async def _end(self, trainjob: TrainJob, survey: Survey, end: Condition) -> Result:
        """Say that a TrainJob has just finished."""
        workload, plan = survey.workload, survey.plan
        seen = Seen(
            verdict=READY if workload else previous_verdict(restored(trainjob.status)),
            workload=workload,
            plan=plan,
            digest=stored_digest(plan, is_written=False),
            end=end,
            first_failure=(
                await self._parts.diagnosis.fetch(trainjob.metadata) if end.type == ConditionType.FAILED else None
            ),
        )
        return await self._tell(trainjob, seen)

    async def _tell(self, trainjob: TrainJob, seen: Seen, error: Exception | None = None) -> Result:
        """Write the status, do what follows from an end, and decide about the next turn."""
        parts, meta, now = self._parts, trainjob.metadata, self._parts.server_time.now()
        if error is not None:
            parts.events.creation_failed(meta, seen.verdict.message)
        status = build_status(trainjob, seen, now)
        # What must not be lost with this process, is not found a second time, or may be over before it is told; and
        # what would cost a turn of its own where the server asks to be left alone.
        is_passing = (seen.plan and deletes_itself(seen.plan)) or is_held_or_freed(trainjob, status)
        is_asked_to_wait = error is not None and wish_of(error) > 0
        at_once = bool(seen.first_failure or is_passing or is_asked_to_wait or _is_unexpected(error))
        wait = await parts.publisher.publish(meta, trainjob.status, status, at_once=at_once)
        if seen.end is not None:
            await parts.finisher.clean(meta, seen.end)
            return Result()
        left = time_left(trainjob, seen.defaults, now)
        if error is None:
            return next_turn(wait, left)
        if seen.verdict.is_lasting:
            _log.warning("nothing more can be done for now", reason=seen.verdict.reason, error=seen.verdict.message)
            return next_turn(wait, left, seen.verdict.retry_seconds)
        retry = RetryableError(seen.verdict.message, requeue_after=next_turn(wait, left).requeue_after)
        if _is_unexpected(error):
            # With its stack, and with the time that must not wait for it.
            raise ExceptionGroup("a turn failed unexpectedly", [error, retry])
        raise retry from error

    def _forget(self, key: ObjectKey) -> None:
        """Forget what is kept of a TrainJob that has finished or is gone."""
        parts = self._parts
        parts.applied.forget(key)
        parts.departures.forget(key)
        parts.publisher.forget(key)
        parts.diagnosis.forget(key)
        parts.written.forget_owner(key)


def _is_unexpected(error: Exception | None) -> bool:
    """Whether an error is a bug, ours or a plugin's, whose stack somebody will want to see."""
    if isinstance(error, PluginError):
        return not isinstance(error.__cause__, ApiError | TransportError)
    return error is not None and not isinstance(error, ApiError | TransportError) and not verdict_of(error).is_lasting
