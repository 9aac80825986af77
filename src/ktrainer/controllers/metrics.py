"""How TrainJobs fare: how many there are by state, how long they wait to run, how long they run.

States are counted in the cache when somebody asks, on every replica. Times are noted by who writes the status, once it
is written and only for what that write changed: neither a restart nor another replica counts a TrainJob again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import Histogram
from prometheus_client.core import GaugeMetricFamily

from ktrainer.api.trainjobstatus import ENDS, ConditionType, Reason, State
from ktrainer.controllers.references import BY_STATE, by_state
from ktrainer.kube.conditions import FALSE, TRUE, find, is_true
from ktrainer.kube.timestamp import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry, Metric

    from ktrainer.api.trainjobstatus import TrainJobStatus
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.machinery.cache.objects import CachedObject
    from ktrainer.machinery.cache.store import Store

WAIT_BUCKETS: Final = (1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 86_400.0)
"""Upper bounds of the time to running, in seconds."""
RUN_BUCKETS: Final = (10.0, 60.0, 600.0, 3600.0, 21_600.0, 86_400.0, 604_800.0)
"""Upper bounds of the run time, in seconds."""


class TrainJobMetrics:
    """The metrics of the TrainJob controller; all series exist from the start."""

    def __init__(self, registry: CollectorRegistry, trainjobs: Store[CachedObject]) -> None:
        """Adds an index to the TrainJobs."""
        trainjobs.add_index(BY_STATE, by_state)
        registry.register(_States(trainjobs))
        self._wait = Histogram(
            "ktrainer_trainjob_time_to_running_seconds",
            "From the creation of a TrainJob, or its last resume, until all its nodes were ready.",
            buckets=WAIT_BUCKETS,
            registry=registry,
        )
        runs = Histogram(
            "ktrainer_trainjob_run_seconds",
            "From the creation of a TrainJob, or its last resume, to its end.",
            ("outcome",),
            buckets=RUN_BUCKETS,
            registry=registry,
        )
        self._runs = {end: runs.labels(end) for end in ENDS}
        self._counted: dict[ObjectKey, tuple[str, str]] = {}
        """The uid and the start of each unfinished TrainJob whose wait was noted: its nodes may become ready again."""

    def status_written(self, meta: ObjectMeta, old: TrainJobStatus, new: TrainJobStatus) -> None:
        """Note what a status that was just written says for the first time."""
        start = start_of(meta, new)
        if start is None or any(is_true(old.conditions, end) for end in ENDS):
            return
        running = find(new.conditions, ConditionType.RUNNING)
        if running and running.status == TRUE and self._is_first(meta, old, start):
            self._wait.observe(_seconds_between(start, running.last_transition_time))
        for end in ENDS:
            ended = find(new.conditions, end)
            if ended and ended.status == TRUE:
                self.forget(meta.key)
                self._runs[end].observe(_seconds_between(start, ended.last_transition_time))

    def forget(self, key: ObjectKey) -> None:
        """Forget a TrainJob that has finished or is gone."""
        self._counted.pop(key, None)

    def _is_first(self, meta: ObjectMeta, old: TrainJobStatus, start: str) -> bool:
        before = find(old.conditions, ConditionType.RUNNING)
        was_running = old.state is State.RUNNING or (before is not None and before.reason == Reason.RESTARTING)
        is_counted = self._counted.get(meta.key) == (meta.uid, start)
        self._counted[meta.key] = (meta.uid, start)
        return not was_running and not is_counted


class _States:
    """Counts TrainJobs by state at the moment of a scrape."""

    def __init__(self, trainjobs: Store[CachedObject]) -> None:
        self._trainjobs = trainjobs

    def describe(self) -> Iterable[Metric]:
        """Return the metric without any values."""
        return [_family()]

    def collect(self) -> Iterable[Metric]:
        """Return the metric with the values of this moment."""
        family = _family()
        for state in State:
            family.add_metric((state.value,), self._trainjobs.count_by_index(BY_STATE, state))
        return [family]


def start_of(meta: ObjectMeta, status: TrainJobStatus) -> str | None:
    """When a TrainJob was created or last resumed."""
    suspended = find(status.conditions, ConditionType.SUSPENDED)
    resumed_at = suspended.last_transition_time if suspended and suspended.status == FALSE else None
    return resumed_at or meta.creation_timestamp


def _family() -> GaugeMetricFamily:
    return GaugeMetricFamily("ktrainer_trainjobs", "TrainJobs in the cluster by state.", labels=("state",))


def _seconds_between(start: str, end: str | None) -> float:
    """The time from one instant to another; 0 where one cannot be read or is before the other."""
    try:
        return max(0.0, parse_time(end or "").timestamp() - parse_time(start).timestamp())
    except ValueError:
        return 0.0
