"""The metrics of controllers, under the names that controller-runtime gave them; all series exist from the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client import CollectorRegistry

BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0),
    *(50.0, 60.0),
)
"""Upper bounds of the duration buckets, in seconds."""

RESULTS = ("success", "error", "requeue_after", "requeue")
"""How a turn can end. `requeue` is upstream's word for something that we do not have; it stays zero."""


@dataclass(frozen=True, slots=True)
class ControllerRecord:
    """What one controller counts."""

    results: Mapping[str, Counter]
    """Turns by how they ended."""
    errors: Counter
    terminal_errors: Counter
    panics: Counter
    timeouts: Counter
    seconds: Histogram
    active_workers: Gauge


class ControllerMetrics:
    """The metrics of all controllers of a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._names: set[str] = set()
        self._results = Counter(
            "controller_runtime_reconcile",
            "Turns of a reconciler, by how they ended.",
            ["controller", "result"],
            registry=registry,
        )

        def counter(name: str, help_text: str) -> Counter:
            return Counter(name, help_text, ["controller"], registry=registry)

        self._errors = counter("controller_runtime_reconcile_errors", "Turns that failed.")
        self._terminal_errors = counter(
            "controller_runtime_terminal_reconcile_errors", "Turns that failed and are not tried again."
        )
        self._panics = counter("controller_runtime_reconcile_panics", "Turns that failed with an unexpected exception.")
        self._timeouts = counter(
            "controller_runtime_reconcile_timeouts", "Turns that took too long and were cancelled."
        )
        self._seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long turns took.",
            ["controller"],
            buckets=BUCKETS,
            registry=registry,
        )
        self._max_workers = Gauge(
            "controller_runtime_max_concurrent_reconciles",
            "How many keys are reconciled at a time at most.",
            ["controller"],
            registry=registry,
        )
        self._active_workers = Gauge(
            "controller_runtime_active_workers",
            "How many keys are being reconciled.",
            ["controller"],
            registry=registry,
        )

    def record(self, name: str, workers: int) -> ControllerRecord:
        """Return the record of a new controller; raises ValueError when the name is taken."""
        if name in self._names:
            raise ValueError(f"there is already a controller named {name}")
        self._names.add(name)
        self._max_workers.labels(name).set(workers)
        return ControllerRecord(
            results={result: self._results.labels(name, result) for result in RESULTS},
            errors=self._errors.labels(name),
            terminal_errors=self._terminal_errors.labels(name),
            panics=self._panics.labels(name),
            timeouts=self._timeouts.labels(name),
            seconds=self._seconds.labels(name),
            active_workers=self._active_workers.labels(name),
        )
