"""What it means that a JobSet is not there any more while its TrainJob has not finished. Pure.

As a rule it is built again. But a JobSet that deletes itself some time after its end may have ended unseen, and then
building it again would train twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.resources import JOBSETS
from ktrainer.api.trainjobstatus import ConditionType, Reason
from ktrainer.controllers.trainjob.conditions import failed_condition
from ktrainer.kube.conditions import is_true

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.conditions import Condition
    from ktrainer.runtime.plan import Plan

MESSAGE = (
    "the JobSet was deleted before its end was seen; since it deletes itself after its end "
    "(ttlSecondsAfterFinished), it may have finished, and is not started again"
)


def deletes_itself(plan: Plan) -> bool:
    """Whether the JobSet that is to be built is gone some time after its end."""
    return any(
        component.resource == JOBSETS and component.body.get("spec", {}).get("ttlSecondsAfterFinished") is not None
        for component in plan.components
    )


def decide_vanished(trainjob: TrainJob, plan: Plan | None) -> Condition | None:
    """The failure of a TrainJob without a JobSet, if it must not get one again; none where it shall be built."""
    status = trainjob.status
    # A JobSet that never started its pods has not finished, either. That its pods shall stop now says nothing.
    if is_true(status.conditions, ConditionType.SUSPENDED):
        return None
    was_there = bool(status.jobs_status) or is_true(status.conditions, ConditionType.RESOURCES_READY)
    if not was_there or plan is None or not deletes_itself(plan):
        return None
    return failed_condition(trainjob, Reason.JOBSET_DELETED, MESSAGE)
