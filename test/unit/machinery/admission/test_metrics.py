from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from ktrainer.machinery.admission.metrics import CODES, WebhookMetrics


def test_all_series_should_exist_from_the_start() -> None:
    registry = CollectorRegistry()
    WebhookMetrics(registry).hook("/validate")
    lines = [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
    for code in CODES:
        assert f'controller_runtime_webhook_requests_total{{code="{code}",webhook="/validate"}} 0.0' in lines
    for series in (
        'controller_runtime_webhook_requests_in_flight{webhook="/validate"}',
        'controller_runtime_webhook_latency_seconds_count{webhook="/validate"}',
        'controller_runtime_webhook_latency_seconds_bucket{le="10.0",webhook="/validate"}',
        "controller_runtime_webhook_panics_total",
    ):
        assert f"{series} 0.0" in lines


def test_a_request_should_be_counted_once_and_timed() -> None:
    registry = CollectorRegistry()
    hook = WebhookMetrics(registry).hook("/validate")
    labels = {"webhook": "/validate"}
    hook.begin()
    assert registry.get_sample_value("controller_runtime_webhook_requests_in_flight", labels) == 1
    hook.end(200, 0.3)
    assert registry.get_sample_value("controller_runtime_webhook_requests_in_flight", labels) == 0
    assert registry.get_sample_value("controller_runtime_webhook_latency_seconds_sum", labels) == 0.3
    assert registry.get_sample_value("controller_runtime_webhook_requests_total", {**labels, "code": "200"}) == 1
