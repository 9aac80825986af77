"""The conditions of a TrainJob: which there are, and what each says. Pure.

Complete and Failed are never taken back: whoever finds one of them true changes no condition any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.trainjobstatus import ENDS, ConditionType, Reason, State
from ktrainer.kube.conditions import FALSE, TRUE, Condition, find, is_true, set_condition
from ktrainer.kube.timestamp import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.workload import WorkloadStatus

OURS: Final = (
    ConditionType.SUSPENDED,
    ConditionType.RESOURCES_READY,
    ConditionType.RUNNING,
    ConditionType.COMPLETE,
    ConditionType.FAILED,
)
"""The types that are ours to write, in the order in which they stand in the list; all others are somebody else's."""

MESSAGE_LIMIT: Final = 32768
"""Characters of a message that the API takes."""

RUNNING_MESSAGES: Final = {
    Reason.NODES_READY: "all nodes are ready or done",
    Reason.PENDING: "not all nodes are ready yet",
    Reason.RESTARTING: "the JobSet was restarted, and not all nodes are ready again",
    Reason.SUSPENDED: "the TrainJob is suspended",
    Reason.FINISHED: "the TrainJob has finished",
}
"""What the condition Running says in words."""


def end_of(conditions: Iterable[Condition]) -> Condition | None:
    """The condition that says that a TrainJob has finished; none while it has not."""
    return next((each for each in conditions if each.type in ENDS and each.status == TRUE), None)


def state_of(conditions: Sequence[Condition], *, suspend: bool) -> State:
    """The one word for a TrainJob with these conditions."""
    end = end_of(conditions)
    if end is not None:
        return ENDS[end.type]
    if suspend:
        return State.SUSPENDED
    return State.RUNNING if is_true(conditions, ConditionType.RUNNING) else State.PENDING


def with_condition(conditions: Sequence[Condition], new: Condition, now: datetime) -> list[Condition]:
    """The conditions with a new one in the place of its type; if it brings its own time, that is when it flipped."""
    try:
        at = parse_time(new.last_transition_time) if new.last_transition_time else now
    except ValueError:
        at = now
    return set_condition(conditions, new, at)


def suspended_condition(trainjob: TrainJob) -> Condition | None:
    """Whether the TrainJob is suspended; none as long as it never was."""
    if trainjob.spec.suspend:
        return _condition(trainjob, ConditionType.SUSPENDED, TRUE, Reason.SUSPENDED, "TrainJob is suspended")
    if find(trainjob.status.conditions, ConditionType.SUSPENDED) is None:
        return None
    return _condition(trainjob, ConditionType.SUSPENDED, FALSE, Reason.RESUMED, "TrainJob is resumed")


def resources_condition(trainjob: TrainJob, reason: Reason, message: str) -> Condition:
    """Whether all that the TrainJob needs is applied."""
    status = TRUE if reason is Reason.APPLIED else FALSE
    return _condition(trainjob, ConditionType.RESOURCES_READY, status, reason, message)


def running_condition(trainjob: TrainJob, workload: WorkloadStatus | None, sized_job: str | None) -> Condition:
    """Whether the nodes are all ready or done, as long as the TrainJob has not finished."""
    if trainjob.spec.suspend:
        return _running(trainjob, Reason.SUSPENDED)
    if sized_job is None or workload is None or workload.is_suspended:
        return _running(trainjob, Reason.PENDING)
    ready = sum(job.ready + job.succeeded for job in workload.jobs if job.name == sized_job)
    if any(job.name == sized_job for job in workload.jobs) and ready >= workload.replicas.get(sized_job, 1):
        return _running(trainjob, Reason.NODES_READY)
    return _running(trainjob, Reason.RESTARTING if workload.restarts else Reason.PENDING)


def finished_condition(trainjob: TrainJob) -> Condition:
    """What Running says of a TrainJob that has finished."""
    return _running(trainjob, Reason.FINISHED)


def failed_condition(trainjob: TrainJob, reason: Reason, message: str) -> Condition:
    """A failure that we decide on."""
    return _condition(trainjob, ConditionType.FAILED, TRUE, reason, message)


def _running(trainjob: TrainJob, reason: Reason) -> Condition:
    status = TRUE if reason is Reason.NODES_READY else FALSE
    return _condition(trainjob, ConditionType.RUNNING, status, reason, RUNNING_MESSAGES[reason])


def _condition(trainjob: TrainJob, type_: ConditionType, status: str, reason: Reason, message: str) -> Condition:
    return Condition(
        type=type_.value,
        status=status,
        reason=reason.value,
        message=message[:MESSAGE_LIMIT],
        observed_generation=trainjob.metadata.generation,
    )
