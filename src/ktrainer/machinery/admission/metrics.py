"""The metrics of webhooks, under the names that controller-runtime gave them.

A webhook's label is its path. All series exist from the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Gauge, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

CODES = (200, 403, 405, 408, 413, 415, 499, 500)
"""The HTTP status codes that a webhook answers with. 499 means that the caller went away before there was an answer."""

LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds in seconds."""


class HookMetrics:
    """The series of one webhook, looked up once."""

    def __init__(self, requests: Counter, latency: Histogram, in_flight: Gauge, path: str) -> None:
        self._by_code = {code: requests.labels(path, str(code)) for code in CODES}
        self._latency = latency.labels(path)
        self._in_flight = in_flight.labels(path)

    def begin(self) -> None:
        """Count a request as being answered."""
        self._in_flight.inc()

    def end(self, code: int, seconds: float) -> None:
        """Count a request as answered with an HTTP status code."""
        self._in_flight.dec()
        self._latency.observe(seconds)
        self._by_code[code].inc()


class WebhookMetrics:
    """What the admission server counts."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._requests = Counter(
            "controller_runtime_webhook_requests",
            "Admission requests by HTTP status code.",
            ("webhook", "code"),
            registry=registry,
        )
        self._latency = Histogram(
            "controller_runtime_webhook_latency_seconds",
            "How long it took to answer admission requests.",
            ("webhook",),
            buckets=LATENCY_BUCKETS,
            registry=registry,
        )
        self._in_flight = Gauge(
            "controller_runtime_webhook_requests_in_flight",
            "Admission requests that are being answered.",
            ("webhook",),
            registry=registry,
        )
        self.panics = Counter(
            "controller_runtime_webhook_panics", "Failures of handlers that nobody foresaw.", registry=registry
        )

    def hook(self, path: str) -> HookMetrics:
        """Create the series of one webhook."""
        return HookMetrics(self._requests, self._latency, self._in_flight, path)
