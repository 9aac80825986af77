from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from ktrainer.machinery.certificates.metrics import CertificateMetrics


def test_all_series_should_exist_from_the_start() -> None:
    registry = CollectorRegistry()
    CertificateMetrics(registry)
    lines = generate_latest(registry).decode().splitlines()
    for series in (
        "certwatcher_read_certificate_total",
        "certwatcher_read_certificate_errors_total",
        "webhook_cert_not_after_seconds",
    ):
        assert f"{series} 0.0" in lines
