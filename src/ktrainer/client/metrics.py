"""Counts and times of the requests to the API server, under the names that client-go has made known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import Counter, Histogram

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_USUAL_CODES = ("200", "201", "404", "409", "429", "500", "503", "<error>")
_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60)
_BYTES = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)

NO_ANSWER = "<error>"
"""What stands for the code where there was no answer."""


class ClientMetrics:
    """The metrics of all clients of one process, for one API server.

    Series of the usual codes exist from the start, so that their rates can be computed; others appear when they occur.
    """

    def __init__(self, registry: CollectorRegistry, host: str) -> None:
        self._host = host
        self._requests = Counter(
            "rest_client_requests_total",
            "Requests to the API server by the status of the answer.",
            ["code", "method", "host"],
            registry=registry,
        )
        self._retries = Counter(
            "rest_client_request_retries_total",
            "Requests that the client sent again by itself, by the status that made it do so.",
            ["code", "verb", "host"],
            registry=registry,
        )
        by_verb = ["verb", "host"]
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Time until the whole answer to a request was there.",
            by_verb,
            registry=registry,
            buckets=_SECONDS,
        )
        self._throttled = Histogram(
            "rest_client_rate_limiter_duration_seconds",
            "Time that requests waited for the client's own rate limit, of those that had to wait.",
            by_verb,
            registry=registry,
            buckets=_SECONDS,
        )
        self._sent = Histogram(
            "rest_client_request_size_bytes",
            "Sizes of the bodies of requests.",
            by_verb,
            registry=registry,
            buckets=_BYTES,
        )
        self._received = Histogram(
            "rest_client_response_size_bytes",
            "Sizes of the bodies of answers.",
            by_verb,
            registry=registry,
            buckets=_BYTES,
        )
        self._request_series: dict[tuple[str, str], Counter] = {}
        """The series by code and method, since looking one up by its labels costs more than counting."""
        self._verb_series = {
            verb: tuple(
                each.labels(verb, host) for each in (self._seconds, self._throttled, self._sent, self._received)
            )
            for verb in METHODS
        }
        for method in METHODS:
            for code in _USUAL_CODES:
                self._request_counter(code, method)
            for code in ("429", "500", "503", NO_ANSWER):
                self._retries.labels(code, method, host)

    def answered(self, method: str, status: int, seconds: float, sent: int, received: int) -> None:
        """Count an answer; `sent` and `received` are the sizes of the bodies."""
        self._request_counter(str(status), method).inc()
        latency, _, request_size, response_size = self._verb_series[method]
        latency.observe(seconds)
        request_size.observe(sent)
        response_size.observe(received)

    def failed(self, method: str, seconds: float) -> None:
        """Count a request that got no answer."""
        self._request_counter(NO_ANSWER, method).inc()
        self._verb_series[method][0].observe(seconds)

    def throttled(self, method: str, seconds: float) -> None:
        """Record how long a request had to wait on our side before it left; those that did not wait are not counted."""
        self._verb_series[method][1].observe(seconds)

    def retried(self, method: str, code: str) -> None:
        """Count that a request is sent again after an answer of this code, or after none."""
        self._retries.labels(code, method, self._host).inc()

    def _request_counter(self, code: str, method: str) -> Counter:
        series = self._request_series.get((code, method))
        if series is None:
            series = self._request_series[code, method] = self._requests.labels(code, method, self._host)
        return series
