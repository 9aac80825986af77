from __future__ import annotations

from prometheus_client import CollectorRegistry

from ktrainer.controllers.pluginmetrics import PluginMetrics

LABELS = {"plugin": "torch", "point": "build"}


def test_the_series_of_a_plugin_should_exist_before_it_runs() -> None:
    registry = CollectorRegistry()
    PluginMetrics(registry).record_of("torch", "build")
    assert registry.get_sample_value("ktrainer_plugin_duration_seconds_count", LABELS) == 0
    assert registry.get_sample_value("ktrainer_plugin_errors_total", LABELS) == 0


def test_runs_should_be_counted_by_their_time_and_failures_by_themselves() -> None:
    registry = CollectorRegistry()
    record = PluginMetrics(registry).record_of("torch", "build")
    for seconds in (0.00005, 0.0001, 0.05, 3.0):
        record(seconds, seconds == 3.0)
    buckets = {
        bound: registry.get_sample_value("ktrainer_plugin_duration_seconds_bucket", LABELS | {"le": bound})
        for bound in ("0.0001", "0.001", "0.01", "0.1", "1.0", "+Inf")
    }
    assert buckets == {"0.0001": 2, "0.001": 2, "0.01": 2, "0.1": 3, "1.0": 3, "+Inf": 4}
    assert registry.get_sample_value("ktrainer_plugin_duration_seconds_count", LABELS) == 4
    assert registry.get_sample_value("ktrainer_plugin_duration_seconds_sum", LABELS) == 3.05015
    assert registry.get_sample_value("ktrainer_plugin_errors_total", LABELS) == 1


def test_a_plugin_that_is_recorded_for_twice_should_have_one_series() -> None:
    registry = CollectorRegistry()
    metrics = PluginMetrics(registry)
    for _ in range(2):
        metrics.record_of("torch", "build")(0.5, False)
    assert registry.get_sample_value("ktrainer_plugin_duration_seconds_count", LABELS) == 2
