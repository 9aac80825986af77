"""When a TrainJob has run for too long. Pure: the object and the time alone decide, so that it survives a restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.trainjobstatus import ConditionType
from ktrainer.kube.conditions import TRUE, find
from ktrainer.kube.timestamp import is_time, parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from ktrainer.api.trainingruntime import RunPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.conditions import Condition

MESSAGE = "TrainJob exceeded its active deadline"


def started_at(trainjob: TrainJob, conditions: Iterable[Condition]) -> str | None:
    """When the TrainJob was created or last resumed, as the server spells it; none while it is suspended."""
    if trainjob.spec.suspend:
        return None
    suspended = find(conditions, ConditionType.SUSPENDED)
    if suspended is None:
        return trainjob.metadata.creation_timestamp
    if suspended.status == TRUE:
        return None
    # Others may write conditions, too: what cannot be read must not free a TrainJob of its deadline.
    resumed_at = suspended.last_transition_time
    return resumed_at if is_time(resumed_at) else trainjob.metadata.creation_timestamp


def seconds_to_deadline(
    trainjob: TrainJob, conditions: Iterable[Condition], defaults: RunPolicy, now: datetime
) -> float | None:
    """How long the TrainJob may still run, negative when it should have ended; none where nothing limits it.

    `conditions` are those that its status will have after this pass: a resume that was just noticed counts.
    """
    limit = trainjob.spec.active_deadline_seconds
    if limit is None:
        limit = defaults.active_deadline_seconds
    start = started_at(trainjob, conditions)
    if limit is None or start is None:
        return None
    # In numbers, since no date is as far away as the greatest limit.
    return parse_time(start).timestamp() + limit - now.timestamp()
