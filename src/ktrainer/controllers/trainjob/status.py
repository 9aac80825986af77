"""What the status of a TrainJob shall say after a pass. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec

from ktrainer.api.decoding import encode
from ktrainer.api.labels import JOBSET_NAME, REPLICATED_JOB_NAME
from ktrainer.api.trainingruntime import RunPolicy
from ktrainer.api.trainjobstatus import ConditionType, TrainJobStatus
from ktrainer.controllers.trainjob.brevity import restored
from ktrainer.controllers.trainjob.conditions import (
    MESSAGE_LIMIT,
    OURS,
    end_of,
    finished_condition,
    resources_condition,
    running_condition,
    state_of,
    suspended_condition,
    with_condition,
)
from ktrainer.controllers.trainjob.deadline import started_at
from ktrainer.kube.conditions import find

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.api.trainjobstatus import FirstFailure, JobStatus
    from ktrainer.controllers.trainjob.verdict import Verdict
    from ktrainer.framework.workload import WorkloadStatus
    from ktrainer.kube.conditions import Condition
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.runtime.plan import Plan


JOBS_LIMIT: Final = 100
"""How many jobs the API lets a status tell of; of any more nothing is told, lest nothing at all could be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a pass has found out."""

    verdict: Verdict
    """Whether all that the TrainJob needs is applied."""
    workload: WorkloadStatus | None = None
    plan: Plan | None = None
    """None where nothing could be planned: what the status says about it stays."""
    defaults: RunPolicy = field(default_factory=RunPolicy)
    """The runtime's for deadline and time to live."""
    digest: str | None = None
    """The digest of the snapshot that there is; none where it is not known to be there."""
    end: Condition | None = None
    """Complete or Failed, with the time where that is known; none while the TrainJob goes on."""
    first_failure: FirstFailure | None = None
    """What failed first; none where nothing new is known about it."""


def conditions_before_end(trainjob: TrainJob, now: datetime) -> list[Condition]:
    """The conditions with what the spec alone tells: whether the TrainJob is suspended."""
    suspended = suspended_condition(trainjob)
    conditions = restored(trainjob.status).conditions
    return with_condition(conditions, suspended, now) if suspended else list(conditions)


def build_status(trainjob: TrainJob, seen: Seen, now: datetime) -> TrainJobStatus:
    """The status after a pass over a TrainJob that had not finished before; what others have written stays."""
    status, plan, workload = trainjob.status, seen.plan, seen.workload
    conditions = conditions_before_end(trainjob, now)
    start = started_at(trainjob, conditions)
    resources = resources_condition(trainjob, seen.verdict.reason, seen.verdict.message)
    conditions = with_condition(conditions, resources, now)
    conditions = _with_running(trainjob, conditions, seen, now)
    update: dict[str, object] = {}
    if workload and workload.jobs:
        update["jobs_status"] = list(workload.jobs[:JOBS_LIMIT])
    if plan and plan.sized_job:
        update["nodes"] = plan.nodes
        update["selector"] = f"{JOBSET_NAME}={trainjob.metadata.name},{REPLICATED_JOB_NAME}={plan.sized_job}"
    if seen.digest:
        update["runtime_digest"] = seen.digest
    if seen.first_failure:
        update["first_failure"] = seen.first_failure
    if trainjob.spec.suspend and seen.end is None:
        update["start_time"] = None
    elif start and (status.start_time or workload or seen.verdict.is_ready):
        # Anew with each resume, as that of a Job.
        update["start_time"] = start
    return _settled(trainjob, status.model_copy(update=update), conditions)


def is_held_or_freed(trainjob: TrainJob, new: TrainJobStatus) -> bool:
    """Whether a status says for the first time that the TrainJob is suspended, or that it is not any more.

    That one was suspended when it was created is no news.
    """
    before, after = (find(each.conditions, ConditionType.SUSPENDED) for each in (trainjob.status, new))
    is_same = (before and before.status) == (after and after.status)
    return not is_same and trainjob.status != TrainJobStatus()


def settled_status(
    trainjob: TrainJob, now: datetime, first_failure: FirstFailure | None = None, jobs: Sequence[JobStatus] = ()
) -> TrainJobStatus:
    """The status of a TrainJob that has finished, with what follows from that; somebody else may have ended it.

    `jobs` are how its jobs are doing, where that is known: some may end after it.
    """
    conditions, finished = list(trainjob.status.conditions), finished_condition(trainjob)
    running = find(conditions, ConditionType.RUNNING)
    if running is None or running.reason != finished.reason:
        conditions = with_condition(conditions, finished, now)
    update: dict[str, object] = {}
    if first_failure is not None:
        update["first_failure"] = first_failure
    if jobs:
        update["jobs_status"] = list(jobs[:JOBS_LIMIT])
    return _settled(trainjob, trainjob.status.model_copy(update=update), conditions)


def _settled(trainjob: TrainJob, status: TrainJobStatus, conditions: list[Condition]) -> TrainJobStatus:
    update: dict[str, object] = {
        "conditions": conditions,
        "state": state_of(conditions, suspend=trainjob.spec.suspend),
        "observed_generation": trainjob.metadata.generation,
    }
    end = end_of(conditions)
    if end is not None and status.completion_time is None:
        update["completion_time"] = end.last_transition_time
    return status.model_copy(update=update)


def _with_running(trainjob: TrainJob, conditions: list[Condition], seen: Seen, now: datetime) -> list[Condition]:
    if seen.end is not None:
        conditions = with_condition(conditions, finished_condition(trainjob), now)
        return with_condition(conditions, _completed(trainjob, seen.end), now)
    # Without a plan, the job that counts is the one that did before.
    sized = seen.plan.sized_job if seen.plan else _sized_before(trainjob.status)
    return with_condition(conditions, running_condition(trainjob, seen.workload, sized), now)


def _sized_before(status: TrainJobStatus) -> str | None:
    """The job that a status counts the nodes of; none where it does not say so."""
    return (status.selector or "").partition(f"{REPLICATED_JOB_NAME}=")[2] or None


def _completed(trainjob: TrainJob, end: Condition) -> Condition:
    """The end as the API takes a condition: the workload may have said too little, or too much."""
    return msgspec.structs.replace(
        end,
        reason=end.reason or end.type,
        message=end.message[:MESSAGE_LIMIT],
        observed_generation=trainjob.metadata.generation,
    )


def ours_of(status: TrainJobStatus) -> JsonObject:
    """The part of a status that is ours to write, complete and in a fixed order: what is left out would be removed."""
    conditions = [found for type_ in OURS if (found := find(status.conditions, type_))]
    fields: JsonObject = {
        "conditions": msgspec.to_builtins(conditions),
        "jobsStatus": [encode(job) for job in status.jobs_status],
        "state": status.state.value if status.state else None,
        "observedGeneration": status.observed_generation,
        "startTime": status.start_time,
        "completionTime": status.completion_time,
        "runtimeDigest": status.runtime_digest,
        "firstFailure": encode(status.first_failure) if status.first_failure else None,
        "nodes": status.nodes,
        "selector": status.selector,
    }
    return {name: value for name, value in fields.items() if value not in (None, [])}
