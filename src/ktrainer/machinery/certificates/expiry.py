"""Telling in time that the certificate being served will expire: renewal must have failed for long by then."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.certificates.metrics import CertificateMetrics

_log = structlog.get_logger(__name__)

WARN_BEFORE = timedelta(days=30)

REPEAT_SECONDS = 86_400.0
"""The time between two warnings about the same certificate."""


class ExpiryWatch:
    """Knows the expiry of the certificate that is served. Plain and atomic."""

    def __init__(self, metrics: CertificateMetrics, warn: Callable[[datetime], None], clock: Clock) -> None:
        """`warn` is told the expiry once a day from 30 days before, to make an event of it."""
        self._metrics = metrics
        self._warn = warn
        self._clock = clock
        self._not_after: datetime | None = None
        self._warned_at: float | None = None

    def served(self, not_after: datetime) -> None:
        """Note that another certificate is served."""
        self._not_after = not_after
        self._warned_at = None
        self._metrics.served(not_after)

    def check(self, now: datetime) -> None:
        """Warn if it is time to."""
        if self._not_after is None or self._not_after - now > WARN_BEFORE:
            return
        monotonic = self._clock.monotonic()
        if self._warned_at is None or monotonic - self._warned_at >= REPEAT_SECONDS:
            self._warned_at = monotonic
            _log.warning("serving certificate expires soon", not_after=self._not_after.isoformat())
            self._warn(self._not_after)
