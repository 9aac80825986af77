"""The metrics of reflectors and informers.

What an informer counted is put into Prometheus's shape only when it is scraped; what it holds is not counted at all but
read off it. A scrape must happen in the thread of the informer's event loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily

from ktrainer.machinery.cache.record import InformerRecord, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import CollectorRegistry, Metric

    from ktrainer.aio.clock import Clock


class Observed(Protocol):
    """What the metrics read off an informer at the moment of a scrape."""

    @property
    def store_objects(self) -> int:
        """How many objects are in the store."""
        ...

    @property
    def store_version(self) -> int:
        """The store's resourceVersion as a number, 0 where it is none."""
        ...

    @property
    def fifo_depth(self) -> int:
        """How many changes wait to be handled."""
        ...

    @property
    def last_activity_at(self) -> float:
        """When the server was last heard of, in monotonic seconds."""
        ...


class CacheMetrics:
    """The collector of all informers of a process; registers itself."""

    def __init__(self, registry: CollectorRegistry, clock: Clock) -> None:
        self._clock = clock
        self._informers: dict[str, tuple[InformerRecord, Observed]] = {}
        registry.register(self)

    def record(self, name: str, informer: Observed) -> InformerRecord:
        """Return the record of a new informer; raises ValueError when the name is taken."""
        if name in self._informers:
            raise ValueError(f"there is already an informer named {name}")
        record = InformerRecord()
        self._informers[name] = (record, informer)
        return record

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without any values, from which the registry learns their names."""
        return _Families().all()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics with the values of this moment."""
        families = _Families()
        now = self._clock.monotonic()
        for name, (record, informer) in self._informers.items():
            families.add_counts(name, record)
            families.add_state(name, record, informer, now)
        return families.all()


class _Families:
    """One scrape."""

    def __init__(self) -> None:
        self._all: list[Metric] = []
        self._lists = self._counter("lists", "Lists that succeeded.")
        self._list_seconds = self._summary("list_duration_seconds", "How long lists took.")
        self._list_items = self._summary("list_items", "How many objects lists brought.")
        self._watches = self._counter("watches", "Watches that ended.")
        self._watch_seconds = self._summary("watch_duration_seconds", "How long watches lasted.")
        self._short_watches = self._counter("short_watches", "Watches that ended at once and brought nothing.")
        self._idle = self._counter("watch_idle_timeouts", "Watches that were given up because nothing came.")
        self._events = self._counter("watch_events", "Events that watches brought.", "type")
        self._relists = self._counter("relist", "Times that everything had to be listed again.", "reason")
        self._skips = self._counter("skipped_objects", "Objects that were passed over.", "reason")
        self._handler_errors = self._counter("handler_errors", "Exceptions raised by event handlers.")
        self._refused = self._gauge("refused", "Whether the server refuses to list and watch.", "reason")
        self._unreachable = self._gauge("unreachable", "Whether the server cannot be reached.")
        self._age = self._gauge("last_event_age_seconds", "How long ago the server was last heard of.")
        self._objects = self._gauge("store_objects", "Objects in the store.")
        self._version = self._gauge("store_resource_version", "The newest version that is in the store.")
        self._depth = self._gauge("fifo_depth", "Changes that wait to be handled.")

    def add_counts(self, name: str, record: InformerRecord) -> None:
        self._lists.add_metric((name,), record.list_seconds.count)
        self._list_seconds.add_metric((name,), record.list_seconds.count, record.list_seconds.total)
        self._list_items.add_metric((name,), record.list_items.count, record.list_items.total)
        self._watches.add_metric((name,), record.watch_seconds.count)
        self._watch_seconds.add_metric((name,), record.watch_seconds.count, record.watch_seconds.total)
        self._short_watches.add_metric((name,), record.short_watches)
        self._idle.add_metric((name,), record.idle_timeouts)
        self._handler_errors.add_metric((name,), record.handler_errors)
        for family, counts in (
            (self._events, record.events),
            (self._relists, record.relists),
            (self._skips, record.skips),
        ):
            for label, count in counts.items():
                family.add_metric((name, label), count)

    def add_state(self, name: str, record: InformerRecord, informer: Observed, now: float) -> None:
        for refusal in Refusal:
            self._refused.add_metric((name, refusal), float(record.refusal is refusal))
        self._unreachable.add_metric((name,), float(record.is_unreachable))
        self._age.add_metric((name,), now - informer.last_activity_at)
        self._objects.add_metric((name,), informer.store_objects)
        self._version.add_metric((name,), informer.store_version)
        self._depth.add_metric((name,), informer.fifo_depth)

    def all(self) -> list[Metric]:
        return self._all

    def _counter(self, name: str, text: str, *labels: str) -> CounterMetricFamily:
        family = CounterMetricFamily(f"reflector_{name}", text, labels=("name", *labels))
        self._all.append(family)
        return family

    def _gauge(self, name: str, text: str, *labels: str) -> GaugeMetricFamily:
        family = GaugeMetricFamily(f"reflector_{name}", text, labels=("name", *labels))
        self._all.append(family)
        return family

    def _summary(self, name: str, text: str) -> SummaryMetricFamily:
        family = SummaryMetricFamily(f"reflector_{name}", text, labels=("name",))
        self._all.append(family)
        return family
