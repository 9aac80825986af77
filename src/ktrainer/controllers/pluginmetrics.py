"""How long plugins take, and how often they fail.

A job passes a dozen plugins at a few points each, so a run is counted in plain numbers, which get Prometheus's shape
when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry, Metric

    from ktrainer.framework.observer import Record

BUCKETS: Final = (0.0001, 0.001, 0.01, 0.1, 1.0)
"""Upper bounds in seconds."""

_BOUNDS: Final = (*map(str, BUCKETS), "+Inf")
_LABELS: Final = ("plugin", "point")


class PluginMetrics:
    """The collector, and the observer of the framework; a plugin's series exist as soon as the framework does."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._runs: dict[tuple[str, str], _Runs] = {}
        registry.register(self)

    def record_of(self, plugin: str, point: str) -> Record:
        """Return what counts one run of the plugin at the point."""
        return self._runs.setdefault((plugin, point), _Runs()).count

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without any values."""
        return _families()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics with the values of this moment."""
        seconds, errors = _families()
        for labels, runs in self._runs.items():
            buckets = list(zip(_BOUNDS, accumulate(runs.counts), strict=True))
            seconds.add_metric(labels, buckets, runs.total_seconds)
            errors.add_metric(labels, runs.errors)
        return seconds, errors


class _Runs:
    __slots__ = ("counts", "errors", "total_seconds")

    def __init__(self) -> None:
        self.counts = [0] * len(_BOUNDS)
        """Runs by the bucket that they fall into."""
        self.total_seconds = 0.0
        self.errors = 0

    def count(self, seconds: float, has_failed: bool) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total_seconds += seconds
        self.errors += has_failed


def _families() -> tuple[HistogramMetricFamily, CounterMetricFamily]:
    return (
        HistogramMetricFamily("ktrainer_plugin_duration_seconds", "How long plugins took at a point.", labels=_LABELS),
        CounterMetricFamily("ktrainer_plugin_errors", "Failures of plugins at a point.", labels=_LABELS),
    )
