"""Whether a TrainJob ends now, and how. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ktrainer.api.trainjobstatus import Reason
from ktrainer.controllers.trainjob import deadline
from ktrainer.controllers.trainjob.conditions import failed_condition
from ktrainer.controllers.trainjob.status import conditions_before_end
from ktrainer.controllers.trainjob.vanished import decide_vanished
from ktrainer.kube.timestamp import format_time

if TYPE_CHECKING:
    from datetime import datetime

    from ktrainer.api.trainingruntime import RunPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.workload import WorkloadStatus
    from ktrainer.kube.conditions import Condition
    from ktrainer.runtime.plan import Plan


def decide_end(
    trainjob: TrainJob, workload: WorkloadStatus | None, plan: Plan | None, defaults: RunPolicy, now: datetime
) -> Condition | None:
    """The end of a TrainJob that had not finished before: that of its workload first, then what we decide on.

    `defaults` are the runtime's.
    """
    if workload is not None and workload.finished:
        return workload.finished[0]
    if workload is None and (vanished := decide_vanished(trainjob, plan)):
        return vanished
    remaining = time_left(trainjob, defaults, now)
    if remaining is not None and remaining <= 0:
        failed = failed_condition(trainjob, Reason.DEADLINE_EXCEEDED, deadline.MESSAGE)
        # By the time that was judged: what is known of the server's clock may be corrected before this is written, and
        # a TrainJob must not seem to have failed ahead of its deadline.
        return msgspec.structs.replace(failed, last_transition_time=format_time(now))
    return None


def time_left(trainjob: TrainJob, defaults: RunPolicy, now: datetime) -> float | None:
    """How many seconds the TrainJob may still run; none where nothing limits it."""
    return deadline.seconds_to_deadline(trainjob, conditions_before_end(trainjob, now), defaults, now)
