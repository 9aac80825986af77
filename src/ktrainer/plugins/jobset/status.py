"""Reads a JobSet's status into the words of a TrainJob."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.trainjobstatus import ConditionType, JobStatus
from ktrainer.framework.workload import WorkloadStatus
from ktrainer.kube.conditions import TRUE, Condition

if TYPE_CHECKING:
    from ktrainer.kube.jsonvalue import JsonObject

_TERMINAL: Final = {"Completed": ConditionType.COMPLETE, "Failed": ConditionType.FAILED}
_COUNTS: Final = ("ready", "succeeded", "failed", "active", "suspended")


def status_of(jobset: JsonObject) -> WorkloadStatus:
    """How a JobSet is doing; what it has not reported counts as zero."""
    status = jobset.get("status") or {}
    conditions = [each for each in status.get("conditions") or () if each["status"] == TRUE]
    return WorkloadStatus(
        finished=tuple(
            Condition(
                type=_TERMINAL[condition["type"]],
                status=TRUE,
                reason=condition.get("reason", ""),
                message=condition.get("message", ""),
                last_transition_time=condition.get("lastTransitionTime"),
            )
            for condition in conditions
            if condition["type"] in _TERMINAL
        ),
        jobs=tuple(
            JobStatus(name=job["name"], **{count: job.get(count, 0) for count in _COUNTS})
            for job in status.get("replicatedJobsStatus") or ()
        ),
        restarts=status.get("restarts", 0),
        replicas={job["name"]: job.get("replicas", 1) for job in jobset["spec"].get("replicatedJobs") or ()},
        is_suspended=any(condition["type"] == "Suspended" for condition in conditions),
    )
