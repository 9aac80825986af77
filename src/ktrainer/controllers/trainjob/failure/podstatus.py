"""As much of a pod as tells what failed in it, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from ktrainer.kube.conditions import TRUE
from ktrainer.kube.timestamp import parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

Text = str | None
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Terminated(msgspec.Struct, rename="camel", frozen=True):
    """How a container ended."""

    exit_code: Int32 = 0
    signal: Int32 | None = None
    reason: Text = None
    message: Text = None
    started_at: Text = None
    finished_at: Text = None


class Running(msgspec.Struct, rename="camel", frozen=True):
    """That a container runs."""

    started_at: Text = None


class State(msgspec.Struct, frozen=True):
    """How a container is, or was before it was started again."""

    running: Running | None = None
    terminated: Terminated | None = None


class Container(msgspec.Struct, rename="camel", frozen=True):
    """The status of a container."""

    name: Text = None
    state: State | None = None
    last_state: State | None = None


class Condition(msgspec.Struct, rename="camel", frozen=True):
    """A condition of a pod."""

    type: Text = None
    status: Text = None
    reason: Text = None
    message: Text = None
    last_transition_time: Text = None


class Status(msgspec.Struct, rename="camel", frozen=True):
    """The status of a pod."""

    phase: Text = None
    reason: Text = None
    message: Text = None
    start_time: Text = None
    conditions: list[Condition] | None = None
    init_container_statuses: list[Container] | None = None
    container_statuses: list[Container] | None = None


class Spec(msgspec.Struct, rename="camel", frozen=True):
    """The spec of a pod."""

    node_name: Text = None


class Meta(msgspec.Struct, rename="camel", frozen=True):
    """The metadata of a pod."""

    name: Text = None
    labels: dict[str, str] | None = None
    creation_timestamp: Text = None
    deletion_timestamp: Text = None
    deletion_grace_period_seconds: Int64 | None = None


class Pod(msgspec.Struct, frozen=True):
    """As much of a pod as tells what failed."""

    metadata: Meta
    spec: Spec = Spec()
    status: Status = Status()


class Moment(NamedTuple):
    """A point in time."""

    seconds: float
    """Since the epoch."""
    text: str
    """RFC 3339, as it was read."""


def moment_of(text: Text) -> Moment | None:
    """The time that a text tells, if it does."""
    try:
        return Moment(parse_time(text).timestamp(), text) if text else None
    except ValueError:
        return None


def disruption_of(pod: Pod) -> Condition | None:
    """Why somebody else ended the pod: eviction, preemption, a lost node."""
    if not has_ended(pod):
        return None
    conditions: Sequence[Condition] = pod.status.conditions or ()
    return next((each for each in conditions if each.type == "DisruptionTarget" and each.status == TRUE), None)


def has_ended(pod: Pod) -> bool:
    """Whether the pod has failed, or is being deleted."""
    return pod.status.phase == "Failed" or pod.metadata.deletion_timestamp is not None


def deletion_of(pod: Pod) -> float | None:
    """When the deletion of the pod began, in seconds since the epoch; none where it has not."""
    deleted = moment_of(pod.metadata.deletion_timestamp)
    # The timestamp is the time at which the pod is killed at the latest, not that of the request.
    return None if deleted is None else deleted.seconds - (pod.metadata.deletion_grace_period_seconds or 0)
