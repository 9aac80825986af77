from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from ktrainer.machinery.certificates.expiry import ExpiryWatch
from ktrainer.machinery.certificates.metrics import CertificateMetrics
from support.virtualtime import EPOCH, ManualClock

DAY = 86_400


class Warned:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.warnings: list[datetime] = []
        self.watch = ExpiryWatch(CertificateMetrics(self.registry), self.warnings.append, self.clock)

    def check_after(self, days: float) -> int:
        """Check some days later, and return how many warnings there have been."""
        self.clock.advance(days * DAY)
        self.watch.check(self.clock.now())
        return len(self.warnings)


def test_a_warning_should_come_once_a_day_from_thirty_days_before() -> None:
    warned = Warned()
    assert warned.check_after(0) == 0
    warned.watch.served(EPOCH + timedelta(days=100))
    assert [warned.check_after(days) for days in (69, 1, 0.5, 0.5, 0.9, 0.2)] == [0, 1, 1, 2, 2, 3]
    with capture_logs() as logs:
        assert warned.check_after(100) == 4
    assert [(entry["event"], entry["not_after"]) for entry in logs] == [
        ("serving certificate expires soon", "2026-04-11T00:00:00+00:00")
    ]


def test_another_certificate_should_start_anew() -> None:
    warned = Warned()
    warned.watch.served(EPOCH + timedelta(days=1))
    assert warned.check_after(0) == 1
    warned.watch.served(EPOCH + timedelta(days=2))
    assert warned.check_after(0) == 2
    warned.watch.served(EPOCH + timedelta(days=200))
    assert warned.check_after(1) == 2
    assert warned.warnings == [EPOCH + timedelta(days=1), EPOCH + timedelta(days=2)]
    seconds = warned.registry.get_sample_value("webhook_cert_not_after_seconds")
    assert seconds == pytest.approx((EPOCH + timedelta(days=200)).timestamp())
