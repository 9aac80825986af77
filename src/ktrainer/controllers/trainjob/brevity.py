"""What the conditions of a TrainJob leave out while all is well and it runs, and what that means. Pure.

Clients of the original take a TrainJob without conditions for one that may run, and look at its pods; they take any
other, until it ends, for one that was merely created. So ResourcesReady and Running, which the original does not have,
are told only while they say more than the state Running does. Parity: kubeflow SDK 0.5, `get_job` and
`wait_for_job_status`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.trainjobstatus import ConditionType, Reason, State
from ktrainer.controllers.trainjob.conditions import RUNNING_MESSAGES
from ktrainer.controllers.trainjob.verdict import READY
from ktrainer.kube.conditions import TRUE, Condition, find, is_true

if TYPE_CHECKING:
    from ktrainer.api.trainjobstatus import TrainJobStatus

_LEFT_OUT: Final = {
    ConditionType.RESOURCES_READY: (Reason.APPLIED, READY.message),
    ConditionType.RUNNING: (Reason.NODES_READY, RUNNING_MESSAGES[Reason.NODES_READY]),
}
"""The conditions that are left out, and what they would say."""


def abridged(status: TrainJobStatus) -> TrainJobStatus:
    """A status as clients of the original understand it."""
    if status.state is not State.RUNNING or not is_true(status.conditions, ConditionType.RESOURCES_READY):
        return status
    conditions = [each for each in status.conditions if each.type not in _LEFT_OUT]
    return status.model_copy(update={"conditions": conditions})


def restored(status: TrainJobStatus) -> TrainJobStatus:
    """A status with what was left out; since when it holds is not known better than that the job has started then."""
    if status.state is not State.RUNNING or find(status.conditions, ConditionType.RESOURCES_READY):
        return status
    left_out = [
        Condition(type_.value, TRUE, reason.value, message, status.start_time, status.observed_generation or 0)
        for type_, (reason, message) in _LEFT_OUT.items()
    ]
    return status.model_copy(update={"conditions": [*status.conditions, *left_out]})
