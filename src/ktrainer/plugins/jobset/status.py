"""Reads a JobSet's status into the words of a TrainJob."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ktrainer.api.schema import INT32_MAX
from ktrainer.api.trainjobstatus import ConditionType, JobStatus
from ktrainer.framework.workload import WorkloadStatus
from ktrainer.kube.conditions import TRUE, Condition

if TYPE_CHECKING:
    from ktrainer.kube.jsonvalue import JsonObject

_TERMINAL: Final = {"Completed": ConditionType.COMPLETE, "Failed": ConditionType.FAILED}
_COUNTS: Final = ("ready", "succeeded", "failed", "active", "suspended")


def status_of(jobset: JsonObject) -> WorkloadStatus:
    """How a JobSet is doing; what it has not reported counts as zero, and so does what is no report.

    Whatever else is wrong with a status, that the JobSet has ended must be found in it.
    """
    status = jobset.get("status")
    status = status if isinstance(status, dict) else {}
    conditions = [each for each in _objects_in(status.get("conditions")) if each.get("status") == TRUE]
    ends = [each for each in conditions if _text_of(each.get("type")) in _TERMINAL]
    jobs = {_text_of(each.get("name")): each for each in _objects_in(status.get("replicatedJobsStatus"))}
    return WorkloadStatus(
        finished=tuple(
            Condition(
                type=_TERMINAL[condition["type"]],
                status=TRUE,
                reason=_text_of(condition.get("reason")),
                message=_text_of(condition.get("message")),
                last_transition_time=_text_of(condition.get("lastTransitionTime")) or None,
            )
            for condition in ends
        ),
        jobs=tuple(
            JobStatus(name=name, **{count: _count_of(job.get(count)) for count in _COUNTS})
            for name, job in jobs.items()
            if name
        ),
        restarts=_count_of(status.get("restarts")),
        replicas={job["name"]: job.get("replicas", 1) for job in jobset["spec"].get("replicatedJobs") or ()},
        is_suspended=any(condition.get("type") == "Suspended" for condition in conditions),
    )


def _objects_in(value: Any) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count_of(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= INT32_MAX else 0
