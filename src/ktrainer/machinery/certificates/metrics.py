"""The metrics of serving certificates, under the names that controller-runtime gave them where it has such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge

if TYPE_CHECKING:
    from datetime import datetime

    from prometheus_client import CollectorRegistry


class CertificateMetrics:
    """What is known about the serving certificate."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reads = Counter("certwatcher_read_certificate", "Times that the certificate was read.", registry=registry)
        self.read_errors = Counter(
            "certwatcher_read_certificate_errors",
            "Times that what was read could not be used as a certificate.",
            registry=registry,
        )
        self._not_after = Gauge(
            "webhook_cert_not_after_seconds",
            "When the certificate that is served expires, as Unix time; 0 while none is served.",
            registry=registry,
        )

    def served(self, not_after: datetime) -> None:
        """Note the expiry of the certificate that is served from now on."""
        self._not_after.set(not_after.timestamp())
