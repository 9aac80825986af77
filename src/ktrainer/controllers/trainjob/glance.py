"""What decides whether there is anything to do for a TrainJob, read from its bytes without decoding the rest.

Most TrainJobs in a cluster have finished, and each of them is looked at whenever the manager starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ktrainer.api.trainjob import TRAINJOB_CONTROLLER
from ktrainer.api.trainjobstatus import ConditionType, Reason
from ktrainer.controllers.references import RuntimeRef  # noqa: TC001 - msgspec reads the annotations at run time
from ktrainer.controllers.trainjob.conditions import end_of
from ktrainer.kube.conditions import Condition, find

if TYPE_CHECKING:
    from ktrainer.machinery.cache.objects import CachedObject


class _Spec(msgspec.Struct, rename="camel", gc=False):
    runtime_ref: RuntimeRef
    managed_by: str = TRAINJOB_CONTROLLER
    ttl_seconds_after_finished: int | None = None


class _Job(msgspec.Struct, gc=False):
    ready: int = 0
    active: int = 0
    suspended: int = 0


class _Status(msgspec.Struct, rename="camel", gc=False):
    conditions: tuple[Condition, ...] = ()
    state: str | None = None
    completion_time: str | None = None
    runtime_digest: str | None = None
    observed_generation: int | None = None
    jobs_status: tuple[_Job, ...] = ()


_specs = msgspec.json.Decoder(_Spec)
_statuses = msgspec.json.Decoder(_Status)


class Glance(msgspec.Struct, gc=False, frozen=True):
    """The few fields of a TrainJob that most passes need."""

    spec: _Spec
    status: _Status

    @property
    def is_ours(self) -> bool:
        """Whether the TrainJob is ours to run."""
        return self.spec.managed_by == TRAINJOB_CONTROLLER

    @property
    def end(self) -> Condition | None:
        """The condition that says that the TrainJob has finished."""
        return end_of(self.status.conditions)

    @property
    def needs_runtime(self) -> bool:
        """Whether the TrainJob has no snapshot of its runtime yet, or has missed the runtime since it was lost."""
        ready = find(self.status.conditions, ConditionType.RESOURCES_READY)
        return not self.status.runtime_digest or (ready is not None and ready.reason == Reason.RUNTIME_NOT_FOUND)

    @property
    def has_jobs_left(self) -> bool:
        """Whether the status tells of jobs that have not ended: those alone can still change when all is over."""
        return any(job.ready or job.active or job.suspended for job in self.status.jobs_status)


def glance_at(trainjob: CachedObject) -> Glance | None:
    """Read the few fields; none of a TrainJob that is malformed."""
    try:
        return Glance(_specs.decode(trainjob.spec), _statuses.decode(trainjob.status) if trainjob.status else _Status())
    except (msgspec.MsgspecError, RecursionError):
        return None
