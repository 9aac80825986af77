"""How the workload of a TrainJob is doing, in the words of the TrainJob's status."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrainer.api.trainjobstatus import JobStatus
    from ktrainer.kube.conditions import Condition


@dataclass(frozen=True, slots=True)
class WorkloadStatus:
    """What the one status plugin reports."""

    finished: tuple[Condition, ...] = ()
    """Complete or Failed, each true, with the workload's own reason, message and time; none while it runs."""
    jobs: tuple[JobStatus, ...] = ()
    """How each replicated job is doing, in the workload's order."""
    restarts: int = 0
    """How often the whole workload was started anew."""
    replicas: dict[str, int] = field(default_factory=dict)
    """How many Jobs each replicated job has."""

    is_suspended: bool = False
    """Whether the workload itself says that it is held; its counts may still be those of before."""
