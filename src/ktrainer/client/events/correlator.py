"""Decides which events are worth a request: repetitions become a series, and no object gets more than its share.

A thing that happens again within six minutes belongs to the series of the first time: the second time the event gets a
count, further times are only counted, and the count is brought up to date every half hour and at the end. Independently
of that an object has 25 requests at once and one more every five minutes. Decides only; nothing is sent from here.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from ktrainer.aio.bucket import TokenBucket

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.client.events.body import ObjectReference, Occurrence

SERIES_SECONDS = 360.0
"""The quiet after which a series is over."""

REFRESH_SECONDS = 1800.0
"""How often the count of a series that goes on is brought up to date."""

BURST = 25
"""How many requests about one object may come at once."""

REFILL_SECONDS = 300.0
"""The time after which an object may have one more."""

REMEMBERED = 4096
"""How many objects, and how many series, are kept in mind; the least recent are forgotten first."""


class Series:
    """A thing that may happen again."""

    __slots__ = ("count", "happened_at", "name", "occurrence", "told_at", "told_count")

    def __init__(self, occurrence: Occurrence, name: str, now: float) -> None:
        self.occurrence = occurrence
        self.name = name
        """The name of its event."""
        self.count = 1
        """How often it has happened."""
        self.told_count = 1
        """How often the server has been told that it happened."""
        self.happened_at = now
        self.told_at = now


class Correlator:
    """The series and shares of one process. Plain and atomic; its size is limited."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._series: OrderedDict[Occurrence, Series] = OrderedDict()
        """The least recently begun first."""
        self._allowances: OrderedDict[ObjectReference, TokenBucket] = OrderedDict()
        """The least recently used first."""

    def begin(self, occurrence: Occurrence, name: str) -> Series | None:
        """Begin a series of this name with its first event; None where the object has had its share."""
        if not self._take(occurrence.regarding):
            return None
        series = Series(occurrence, name, self._clock.monotonic())
        self._series[occurrence] = series
        if len(self._series) > REMEMBERED:
            self._series.popitem(last=False)
        return series

    def find(self, occurrence: Occurrence) -> Series | None:
        """The series that this would be part of, if there is one that is not over."""
        series = self._series.get(occurrence)
        if series is None or self._is_over(series):
            return None
        return series

    def repeat(self, series: Series) -> bool:
        """Count one more time; return whether the server is to be told, which is then noted as done."""
        series.count += 1
        series.happened_at = self._clock.monotonic()
        return series.told_count == 1 and self._tell(series)

    def finish(self, occurrence: Occurrence) -> Series | None:
        """Forget a series that is over; return it where its count is yet to be told, noted as done."""
        series = self._series.pop(occurrence, None)
        if series is None or series.count == series.told_count or not self._tell(series):
            return None
        return series

    def due(self) -> list[Series]:
        """The series whose counts are to be told now, noted as done; forgets those that are over."""
        now = self._clock.monotonic()
        result = []
        for occurrence, series in list(self._series.items()):
            is_over = self._is_over(series)
            is_due = series.count > series.told_count and (is_over or now - series.told_at >= REFRESH_SECONDS)
            if is_due and self._tell(series):
                result.append(series)
            if is_over:
                del self._series[occurrence]
        return result

    def _is_over(self, series: Series) -> bool:
        return self._clock.monotonic() - series.happened_at >= SERIES_SECONDS

    def _tell(self, series: Series) -> bool:
        if not self._take(series.occurrence.regarding):
            return False
        series.told_count = series.count
        series.told_at = self._clock.monotonic()
        return True

    def _take(self, regarding: ObjectReference) -> bool:
        """Take one request out of an object's share, if there is one left."""
        share = self._allowances.pop(regarding, None) or TokenBucket(1 / REFILL_SECONDS, BURST, self._clock)
        self._allowances[regarding] = share
        if len(self._allowances) > REMEMBERED:
            self._allowances.popitem(last=False)
        return share.take()
