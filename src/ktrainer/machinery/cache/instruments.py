"""What the parts of informers share: clock and dice, and where to report to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.cache.metrics import CacheMetrics
    from ktrainer.machinery.cache.record import InformerRecord
    from ktrainer.machinery.cache.vitals import Vitals


@dataclass(frozen=True, slots=True)
class Tools:
    """Of all informers of a cache."""

    clock: Clock
    random: Random
    metrics: CacheMetrics


@dataclass(frozen=True, slots=True)
class Instruments:
    """Of one informer."""

    name: str
    clock: Clock
    random: Random
    record: InformerRecord
    vitals: Vitals
