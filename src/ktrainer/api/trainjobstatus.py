"""The status of a TrainJob, and the words in it that clients read."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from ktrainer.api.model import Condition, Model
from ktrainer.api.schema import ATOMIC, INT64, Count, Instant, Int32, Keyed, Name, Rule


class State(StrEnum):
    """The one word that tells how a TrainJob is."""

    SUSPENDED = "Suspended"
    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETE = "Complete"
    FAILED = "Failed"


class ConditionType(StrEnum):
    """The types of a TrainJob's conditions."""

    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"
    RESOURCES_READY = "ResourcesReady"
    RUNNING = "Running"


ENDS: Final[dict[str, State]] = {ConditionType.COMPLETE: State.COMPLETE, ConditionType.FAILED: State.FAILED}
"""The conditions of which one that is true says that a TrainJob has finished, and the state that it is in then."""


class Reason(StrEnum):
    """The reasons of a TrainJob's conditions that are ours; the others come from the JobSet."""

    # Suspended
    SUSPENDED = "Suspended"
    """Also of Running."""
    RESUMED = "Resumed"
    # Failed
    TRAINING_RUNTIME_NOT_SUPPORTED = "TrainingRuntimeNotSupported"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    JOBSET_DELETED = "JobSetDeleted"
    # ResourcesReady
    APPLIED = "Applied"
    VALIDATION_REJECTED = "ValidationRejected"
    RUNTIME_NOT_FOUND = "RuntimeNotFound"
    RUNTIME_SNAPSHOT_INVALID = "RuntimeSnapshotInvalid"
    APPLY_REFUSED = "ApplyRefused"
    APPLY_FAILED = "ApplyFailed"
    # Running
    NODES_READY = "NodesReady"
    PENDING = "Pending"
    RESTARTING = "Restarting"
    FINISHED = "Finished"


class JobStatus(Model):
    """How many Jobs of a replicated job are in which state."""

    name: Name
    """The name of the replicated job."""
    ready: Count
    """Jobs whose pods are all ready or have succeeded."""
    succeeded: Count
    """Jobs that have succeeded."""
    failed: Count
    """Jobs that have failed."""
    active: Count
    """Jobs with at least one pod that is pending or running."""
    suspended: Count
    """Jobs that are suspended."""


class Metric(Model):
    """One measured value."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
    """What was measured."""
    value: Annotated[str, Field(min_length=1, max_length=64)]
    """The value, in the form that the training reports it."""


class TrainerStatus(Model):
    """What the training reports about itself."""

    rules = (
        Rule(
            "has(self.lastUpdatedTime)",
            "lastUpdatedTime is required",
            lambda status: status.last_updated_time is not None,
        ),
    )

    progress_percentage: Annotated[Count, Field(le=100)] | None = None
    """How much of the training is done."""
    estimated_remaining_seconds: Count | None = None
    """How many seconds the training still needs, by its own estimate."""
    metrics: Annotated[list[Metric], Field(max_length=256), ATOMIC] = Field(default_factory=list)
    """The latest metrics."""
    last_updated_time: Instant | None = None
    """When the training reported this."""


class FirstFailure(Model):
    """What failed first in the last attempt."""

    time: Instant
    """When it failed."""
    job: Annotated[str, Field(max_length=253)] | None = None
    """The replicated job."""
    pod: Annotated[str, Field(max_length=253)] | None = None
    """The pod."""
    node: Annotated[str, Field(max_length=253)] | None = None
    """The node of the cluster that the pod was on."""
    container: Annotated[str, Field(max_length=253)] | None = None
    """The container."""
    exit_code: Int32 | None = None
    """The exit code of the container."""
    signal: Int32 | None = None
    """The signal that ended the container."""
    reason: Annotated[str, Field(max_length=1024)] | None = None
    """Why it failed in one word, such as OOMKilled, Evicted or Error."""
    message: Annotated[str, Field(max_length=2048)] | None = None
    """Why it failed, as far as Kubernetes knows."""


class TrainJobStatus(Model):
    """What has become of a TrainJob."""

    conditions: Annotated[list[Condition], Field(max_length=8), Keyed("type")] = Field(default_factory=list)
    """The details of the state; the types are Suspended, Complete, Failed, ResourcesReady and Running, of which
    the last two may be left out while they are true."""
    jobs_status: Annotated[list[JobStatus], Field(max_length=100), Keyed("name")] = Field(default_factory=list)
    """The state of each replicated job."""
    trainer_status: TrainerStatus | None = None
    """What the training reports about itself."""
    state: Annotated[State, Field(strict=False)] | None = None
    """How the TrainJob is, in one word."""
    observed_generation: Annotated[int, Field(ge=0), INT64] | None = None
    """The metadata.generation of the spec that this status speaks of."""
    start_time: Instant | None = None
    """When the job was first started."""
    completion_time: Instant | None = None
    """When the job ended."""
    runtime_digest: Annotated[str, Field(max_length=128)] | None = None
    """The digest of the runtime that the job was made from, such as sha256:… of its snapshot."""
    first_failure: FirstFailure | None = None
    """What failed first in the last attempt."""
    nodes: Count | None = None
    """The number of training nodes that there are; the replicas of the scale subresource."""
    selector: Annotated[str, Field(max_length=1024)] | None = None
    """A label selector for the training nodes' pods; that of the scale subresource."""
