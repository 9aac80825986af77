"""The metrics of workqueues, under the names that client-go and controller-runtime gave them.

A queue counts into plain numbers, which are put into Prometheus's shape only when they are scraped: counting is on the
path of every key. Depth, unfinished work and the longest run are not counted at all but read off the queue. A scrape
must happen in the thread of the queue's event loop.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from prometheus_client import CollectorRegistry, Metric

    from ktrainer.aio.clock import Clock

BUCKETS = tuple(float(f"1e{exponent}") for exponent in range(-8, 4))
"""Upper bounds of the duration buckets in seconds: 12 of them, from 10 ns to 1000 s."""

MAX_PRIORITIES = 25
"""How many priorities get a depth of their own; those that turn up later share one label."""

OTHER_PRIORITIES = "exceeded_cardinality_limit"

_LABELS = ("name", "controller")


class Observed(Protocol):
    """What the metrics read off a queue at the moment of a scrape."""

    def depth(self) -> Mapping[int, int]:
        """Return how many keys wait for their turn, by priority."""
        ...

    def running_since(self) -> Collection[float]:
        """Return the monotonic times at which the keys in processing were handed out."""
        ...


class Durations:
    """A histogram in plain numbers."""

    __slots__ = ("_counts", "_total_seconds")

    def __init__(self) -> None:
        self._counts = [0] * (len(BUCKETS) + 1)
        """Observations per bucket, not cumulative; the last is for what exceeds all bounds."""
        self._total_seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self._counts[bisect_left(BUCKETS, seconds)] += 1
        self._total_seconds += seconds

    def add_to(self, family: HistogramMetricFamily, labels: tuple[str, ...]) -> None:
        """Add these counts to a scrape."""
        bounds = (*map(floatToGoString, BUCKETS), "+Inf")
        counts = accumulate(map(float, self._counts))
        family.add_metric(labels, list(zip(bounds, counts, strict=True)), self._total_seconds)


class QueueRecord:
    """What one queue counts; written by the queue, read at a scrape."""

    __slots__ = ("_depth_labels", "_queue", "adds", "queued", "retries", "running_since", "worked")

    def __init__(self, queue: Observed) -> None:
        self._queue = queue
        self.running_since = queue.running_since
        self.adds = 0
        """Times that a key began to wait for its turn; an add of a key that already waits is none."""
        self.retries = 0
        """Times that a key was added with a delay."""
        self.queued = Durations()
        """From becoming ready to being handed out."""
        self.worked = Durations()
        """From being handed out to being done."""
        self._depth_labels = {0: "0"}
        """The priorities that have a label of their own, which they keep."""

    def depths(self) -> dict[str, int]:
        """Return the depth by label of priority, zeros included."""
        by_priority = self._queue.depth()
        for priority in sorted(by_priority):
            if len(self._depth_labels) < MAX_PRIORITIES:
                self._depth_labels.setdefault(priority, str(priority))
        depths = dict.fromkeys(self._depth_labels.values(), 0)
        for priority, count in by_priority.items():
            label = self._depth_labels.get(priority, OTHER_PRIORITIES)
            depths[label] = depths.get(label, 0) + count
        return depths


class QueueMetrics:
    """The collector of all workqueues of a process; registers itself."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self._clock = clock
        self._records: dict[str, QueueRecord] = {}
        registry.register(self)

    def record(self, name: str, queue: Observed) -> QueueRecord:
        """Return the record of a new queue; raises ValueError when the name is taken."""
        if name in self._records:
            raise ValueError(f"there is already a workqueue named {name}")
        return self._records.setdefault(name, QueueRecord(queue))

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without any values, from which the registry learns their names."""
        return _Families().all()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics with the values of this moment."""
        families = _Families()
        now = self._clock.monotonic()
        for name, record in self._records.items():
            families.add(name, record, now)
        return families.all()


class _Families:
    """One scrape."""

    def __init__(self) -> None:
        self._depth = GaugeMetricFamily(
            "workqueue_depth", "Keys that are ready and wait for a worker.", labels=(*_LABELS, "priority")
        )
        self._adds = CounterMetricFamily("workqueue_adds", "Keys that became ready.", labels=_LABELS)
        self._retries = CounterMetricFamily("workqueue_retries", "Keys that were added with a delay.", labels=_LABELS)
        self._queued = HistogramMetricFamily(
            "workqueue_queue_duration_seconds", "How long keys waited for a worker.", labels=_LABELS
        )
        self._worked = HistogramMetricFamily(
            "workqueue_work_duration_seconds", "How long workers took for a key.", labels=_LABELS
        )
        self._unfinished = GaugeMetricFamily(
            "workqueue_unfinished_work_seconds",
            "How long the keys in processing have been there, all added up; growth tells of stuck workers.",
            labels=_LABELS,
        )
        self._longest = GaugeMetricFamily(
            "workqueue_longest_running_processor_seconds",
            "How long the key that has been in processing longest has been there.",
            labels=_LABELS,
        )

    def add(self, name: str, record: QueueRecord, now: float) -> None:
        labels = (name, name)  # upstream, too, names a controller's queue after the controller
        for priority, depth in record.depths().items():
            self._depth.add_metric((*labels, priority), depth)
        self._adds.add_metric(labels, record.adds)
        self._retries.add_metric(labels, record.retries)
        record.queued.add_to(self._queued, labels)
        record.worked.add_to(self._worked, labels)
        running = [now - since for since in record.running_since()]
        self._unfinished.add_metric(labels, sum(running))
        self._longest.add_metric(labels, max(running, default=0.0))

    def all(self) -> list[Metric]:
        return [
            self._depth,
            self._adds,
            self._retries,
            self._queued,
            self._worked,
            self._unfinished,
            self._longest,
        ]
