"""What failed in a pod, as its status tells: containers that ended badly, or the pod as a whole.

What is merely a consequence is left out: containers that were told to end because their pod was deleted, as Job and
JobSet delete the others when one has failed, and crashes that a container has long recovered from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ktrainer.controllers.trainjob.failure.podstatus import State, deletion_of, disruption_of, has_ended, moment_of
from ktrainer.kube.conditions import TRUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ktrainer.controllers.trainjob.failure.podstatus import Container, Moment, Pod, Running, Terminated

RECOVERED_SECONDS: Final = 600.0
"""Whoever has run this long since a crash has recovered from it; the kubelet forgets crashes after as long."""

SKEW_SECONDS: Final = 5.0
"""How far the clocks of nodes and servers may differ; times in statuses are whole seconds, too."""

_SIGNALS: Final = range(1, 65)
_SHELL_BASE: Final = 128
"""Exit codes above it tell a signal, as in shells."""
_KILLS: Final = frozenset({9, 15})
"""The signals by which a container is told to end, and made to."""
_GENERIC: Final = frozenset({None, "", "Error", "Completed", "ContainerStatusUnknown"})
"""Reasons of containers that say less than any reason of the pod."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that failed by itself."""

    pod: Pod
    at: Moment
    is_killed: bool = False
    """Whether somebody ended it, nobody says why."""
    container: str | None = None
    exit_code: int | None = None
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    """The container's last words."""
    resumed_at: Moment | None = None
    """When the container was running again, if it still is."""


def failures_of(pod: Pod) -> Iterator[Failure]:
    """All that failed in a pod by itself."""
    if pod.status.phase == "Succeeded":
        return
    reason = _reason_of(pod)
    has_current = False
    for container in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        now, before = container.state or State(), container.last_state or State()
        if now.terminated and _has_failed(now.terminated) and not (reason is None and _was_ended(pod, now.terminated)):
            has_current = True
            yield from _container_failure(pod, container, now.terminated, reason)
        if before.terminated and _has_failed(before.terminated) and not _has_recovered(pod, now):
            yield from _container_failure(pod, container, before.terminated, None, now.running)
    is_failed = pod.status.phase == "Failed" and pod.metadata.deletion_timestamp is None
    if not has_current and (reason is not None or is_failed):
        yield from _pod_failure(pod, reason or "Error")


def _reason_of(pod: Pod) -> str | None:
    """Why the pod as a whole ended before its time, if it did; nobody gives a reason for a mere deletion."""
    if pod.status.reason and has_ended(pod):
        return pod.status.reason
    disruption = disruption_of(pod)
    return disruption.reason or "Disrupted" if disruption else None


def _container_failure(
    pod: Pod, container: Container, terminated: Terminated, pod_reason: str | None, resumed: Running | None = None
) -> Iterator[Failure]:
    at = moment_of(terminated.finished_at) or _best_time_of(pod)
    if at is None:
        return
    disruption = disruption_of(pod) if pod_reason else None
    began = moment_of(disruption.last_transition_time) if disruption else None
    signal = _signal_of(terminated)
    is_generic = terminated.reason in _GENERIC
    yield Failure(
        pod,
        min(at, began) if began else at,
        is_killed=signal in _KILLS and is_generic and not pod_reason,
        container=container.name,
        exit_code=terminated.exit_code,
        signal=signal,
        reason=pod_reason if pod_reason and is_generic else terminated.reason or "Error",
        message=terminated.message,
        resumed_at=moment_of(resumed.started_at) if resumed else None,
    )


def _pod_failure(pod: Pod, reason: str) -> Iterator[Failure]:
    at = _best_time_of(pod)
    if at is not None:
        yield Failure(pod, at, reason=reason)


def _has_failed(terminated: Terminated) -> bool:
    return terminated.exit_code != 0 or bool(terminated.signal)


def _signal_of(terminated: Terminated) -> int | None:
    """The signal that ended a container, as far as its runtime or its shell tells."""
    for number in (terminated.signal or 0, terminated.exit_code - _SHELL_BASE):
        if number in _SIGNALS:
            return number
    return None


def _was_ended(pod: Pod, terminated: Terminated) -> bool:
    """Whether a container ended because its pod was deleted, and not the other way round."""
    began = deletion_of(pod)
    if began is None:
        return False
    ended = moment_of(terminated.finished_at)
    # Whoever fails by itself may seem to do so a little after the deletion that came of it.
    allowance = SKEW_SECONDS if _has_failed(terminated) and _signal_of(terminated) not in _KILLS else 0.0
    return ended is None or ended.seconds >= began + allowance


def _has_recovered(pod: Pod, now: State) -> bool:
    """Whether what ran after a crash, and has ended, makes up for it."""
    if now.terminated is None:
        return False
    if not _has_failed(now.terminated) and not _was_ended(pod, now.terminated):
        return True
    began, ended = moment_of(now.terminated.started_at), moment_of(now.terminated.finished_at)
    return began is not None and ended is not None and ended.seconds - began.seconds >= RECOVERED_SECONDS


def _best_time_of(pod: Pod) -> Moment | None:
    """When a pod failed of which no container tells."""
    disruption = disruption_of(pod)
    conditions = [each for each in pod.status.conditions or () if each.type == "Ready" and each.status != TRUE]
    texts = (
        disruption.last_transition_time if disruption else None,
        *(each.last_transition_time for each in conditions),
        pod.metadata.deletion_timestamp,
        pod.status.start_time,
        pod.metadata.creation_timestamp,
    )
    return next(filter(None, map(moment_of, texts)), None)
