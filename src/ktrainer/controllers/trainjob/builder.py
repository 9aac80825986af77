"""Finds out what a TrainJob needs, and has it written; what goes wrong is returned, since the status shall tell it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ktrainer.api.resources import CONFIG_MAPS, JOBSETS, TRAINJOBS
from ktrainer.api.trainingruntime import RunPolicy
from ktrainer.api.trainjobstatus import TrainJobStatus
from ktrainer.client.errors import TransportError
from ktrainer.controllers.trainjob.brevity import restored
from ktrainer.controllers.trainjob.verdict import is_settled
from ktrainer.controllers.trainjob.writer import SnapshotAppeared
from ktrainer.framework.component import Write, is_controlled
from ktrainer.kube.access import Access
from ktrainer.kube.errors import ApiError
from ktrainer.machinery.cache.reader import CacheError
from ktrainer.machinery.control.reconcile import RetryableError, Stale
from ktrainer.machinery.election.leader import NotLeading
from ktrainer.plugins.jobset.build import build_suspension, is_suspension

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.controllers.trainjob.departures import Departures
    from ktrainer.controllers.trainjob.events import Events
    from ktrainer.controllers.trainjob.publisher import Publisher
    from ktrainer.controllers.trainjob.writer import Writer
    from ktrainer.framework.reader import Reader
    from ktrainer.framework.workload import WorkloadStatus
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.runtime.plan import Plan
    from ktrainer.runtime.runtime import Runtime

ACCESS: Final = (Access(JOBSETS, ("get",)), Access(TRAINJOBS, ("get",)))

_PASSING: Final = (RetryableError, CacheError, NotLeading)
"""Errors that say nothing about the TrainJob: it just was not the time."""


class Survey(NamedTuple):
    """What there is, and what there should be."""

    workload: WorkloadStatus | None
    plan: Plan | None
    defaults: RunPolicy
    """The runtime's for deadline and time to live: they hold also while nothing can be planned."""
    trouble: Exception | None = None
    """What went wrong while finding that out."""


class Builder:
    """Builds what TrainJobs need."""

    def __init__(
        self, writer: Writer, reader: Reader, publisher: Publisher, departures: Departures, events: Events
    ) -> None:
        self._writer = writer
        self._reader = reader
        self._publisher = publisher
        self._departures = departures
        self._events = events

    async def survey(self, runtime: Runtime, trainjob: TrainJob, malformed: Exception | None = None) -> Survey:
        """How the workload is, what is to be written, and what went wrong while finding that out.

        For a TrainJob that is being deleted nothing is planned: somebody may hold it, but it needs nothing any more.
        Nothing can be planned for one that is `malformed`.
        """
        workload: WorkloadStatus | None = None
        meta = trainjob.metadata
        try:
            workload = await runtime.status(trainjob) or self._departures.last_of(meta.key, meta.uid)
            if workload is None and self._departures.is_behind:
                raise Stale("it is not known yet how the JobSets ended that are gone")
            if meta.is_deleting:
                return Survey(workload, None, await _defaults(runtime, trainjob))
            if malformed is not None:
                defaults = await _defaults(runtime, trainjob) if workload else RunPolicy()
                return Survey(workload, None, defaults, malformed)
            is_new = workload is None and trainjob.status == TrainJobStatus()
            plan = await runtime.plan(trainjob, is_new=is_new)
            return Survey(workload, plan, plan.run_policy)
        except _PASSING:
            raise
        except Exception as error:  # plugins may not be ours, and the user shall read in the status what is wrong
            return Survey(workload, None, await _defaults(runtime, trainjob), error)

    async def may_have_ended(self, trainjob: TrainJob) -> bool:
        """Whether a JobSet that is missing may have ended unseen.

        Raises Stale where it is there, though no cache shows it: what follows is not to be taken back.
        """
        meta = trainjob.metadata
        present = await self._reader.fetch(JOBSETS, meta.namespace, meta.name, live=True)
        if present is not None and is_controlled(present, meta.uid):
            raise Stale("the cache of jobsets does not show the JobSet yet")
        return not self._departures.was_held(meta.key, meta.uid)

    async def hold(self, trainjob: TrainJob) -> Exception | None:
        """Let a suspension reach the workload though there is no plan; return what went wrong."""
        meta = trainjob.metadata
        try:
            jobset = await self._reader.fetch(JOBSETS, meta.namespace, meta.name) if trainjob.spec.suspend else None
            if jobset and is_controlled(jobset, meta.uid) and not jobset["spec"].get("suspend"):
                await self._writer.write(trainjob, build_suspension(jobset), is_settled=False)
        except _PASSING:
            raise
        except Exception as error:  # as above
            return error
        return None

    async def build(
        self, runtime: Runtime, trainjob: TrainJob, plan: Plan, workload: WorkloadStatus | None
    ) -> tuple[Plan | None, Exception | None]:
        """Write what is planned; return the plan that counts, and what went wrong."""
        try:
            # Who has a snapshot has been worked on, whatever its status says.
            if workload is None and (trainjob.status != TrainJobStatus() or not makes_snapshot(plan)):
                await self._check_current(trainjob.metadata)
            try:
                await self._write_all(trainjob, plan)
            except SnapshotAppeared:
                plan = await runtime.plan(trainjob)
                await self._write_all(trainjob, plan)
        except _PASSING:
            raise
        except Exception as error:  # as above
            return plan, error
        return plan, None

    async def _check_current(self, meta: ObjectMeta) -> None:
        """Raise Stale where the TrainJob is not as the cache shows it: the JobSet that is missing may have ended."""
        present = await self._reader.fetch(TRAINJOBS, meta.namespace, meta.name, live=True)
        if present is None or present["metadata"].get("resourceVersion") != meta.resource_version:
            raise Stale("the cache of trainjobs does not show the TrainJob as it is")

    async def _write_all(self, trainjob: TrainJob, plan: Plan) -> None:
        settled = is_settled(restored(trainjob.status), trainjob.metadata.generation)
        # First of all: pods that shall stop must not run on since something else is refused.
        urgent = [each for each in plan.components if is_suspension(each)]
        for component in urgent:
            await self._writer.write(trainjob, component, is_settled=settled)
        if makes_snapshot(plan) and trainjob.status.runtime_digest not in (None, plan.runtime_digest):
            await self._renew_digest(trainjob, plan)
        for component in plan.components:
            if component not in urgent:
                await self._writer.write(trainjob, component, is_settled=settled)

    async def _renew_digest(self, trainjob: TrainJob, plan: Plan) -> None:
        """Store the digest of another snapshot than that which was lost, before it is there: else nobody trusts it."""
        renewed = trainjob.status.model_copy(update={"runtime_digest": plan.runtime_digest})
        await self._publisher.publish(trainjob.metadata, trainjob.status, renewed, at_once=True)
        self._events.snapshot_lost(trainjob.metadata)
        raise Stale("the snapshot of the runtime was lost; the digest of the new one is stored first")


async def _defaults(runtime: Runtime, trainjob: TrainJob) -> RunPolicy:
    try:
        return await runtime.run_policy(trainjob)
    except (ApiError, TransportError):
        # What kept the plan from being made: it is told there, and tried again soon.
        return RunPolicy()


def stored_digest(plan: Plan | None, *, is_written: bool) -> str | None:
    """The digest of a plan's runtime that may be stored; none while its snapshot is not there.

    Once it is there, the digest is told whatever else is wrong: nobody may exchange the snapshot meanwhile.
    `is_written` says whether all that was planned is.
    """
    return plan.runtime_digest if plan and (is_written or not makes_snapshot(plan)) else None


def makes_snapshot(plan: Plan) -> bool:
    """Whether the snapshot of the runtime is among what is to be written."""
    return any(each.resource == CONFIG_MAPS and each.write is Write.CREATE for each in plan.components)
