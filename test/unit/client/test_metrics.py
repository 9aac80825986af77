from prometheus_client import CollectorRegistry

from ktrainer.client.metrics import METHODS, NO_ANSWER, ClientMetrics


def test_the_usual_series_should_exist_from_the_start() -> None:
    registry = CollectorRegistry()
    ClientMetrics(registry, "host")
    for method in METHODS:
        assert (
            registry.get_sample_value("rest_client_requests_total", {"code": "200", "method": method, "host": "host"})
            == 0
        )
        assert (
            registry.get_sample_value(
                "rest_client_request_retries_total", {"code": NO_ANSWER, "verb": method, "host": "host"}
            )
            == 0
        )
        for name in (
            "rest_client_request_duration_seconds",
            "rest_client_rate_limiter_duration_seconds",
            "rest_client_request_size_bytes",
            "rest_client_response_size_bytes",
        ):
            assert registry.get_sample_value(f"{name}_count", {"verb": method, "host": "host"}) == 0


def test_requests_should_be_counted_and_measured() -> None:
    registry = CollectorRegistry()
    metrics = ClientMetrics(registry, "host")

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"host": "host"} | labels)

    metrics.answered("PATCH", 200, 0.25, 100, 2000)
    metrics.answered("PATCH", 418, 0.25, 100, 2000)
    metrics.failed("PATCH", 1.0)
    metrics.throttled("PATCH", 3.0)
    metrics.retried("PATCH", "429")
    assert value("rest_client_requests_total", code="200", method="PATCH") == 1
    assert value("rest_client_requests_total", code="418", method="PATCH") == 1
    assert value("rest_client_requests_total", code=NO_ANSWER, method="PATCH") == 1
    assert value("rest_client_request_duration_seconds_sum", verb="PATCH") == 1.5
    assert value("rest_client_rate_limiter_duration_seconds_sum", verb="PATCH") == 3
    assert value("rest_client_request_size_bytes_sum", verb="PATCH") == 200
    assert value("rest_client_response_size_bytes_sum", verb="PATCH") == 4000
    assert value("rest_client_request_retries_total", code="429", verb="PATCH") == 1
