import asyncio

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import DuplicateTimeseries

from ktrainer.machinery.queue.metrics import QueueMetrics
from support.queues import build_queue
from support.virtualtime import VirtualClock

LABELS = {"name": "test", "controller": "test"}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def depth(registry: CollectorRegistry, priority: str) -> float | None:
    return registry.get_sample_value("workqueue_depth", {**LABELS, "priority": priority})


async def test_all_series_should_be_there_from_the_start(
    registry: CollectorRegistry, virtual_clock: VirtualClock
) -> None:
    build_queue(virtual_clock, registry)
    for name in (
        "workqueue_adds_total",
        "workqueue_retries_total",
        "workqueue_queue_duration_seconds_count",
        "workqueue_queue_duration_seconds_sum",
        "workqueue_work_duration_seconds_count",
        "workqueue_work_duration_seconds_sum",
        "workqueue_unfinished_work_seconds",
        "workqueue_longest_running_processor_seconds",
    ):
        assert registry.get_sample_value(name, LABELS) == 0
    assert depth(registry, "0") == 0


async def test_depth_should_count_ready_keys_by_priority(
    registry: CollectorRegistry, virtual_clock: VirtualClock
) -> None:
    queue = build_queue(virtual_clock, registry)
    queue.add("a")
    queue.add("b")
    queue.add("c", priority=-100)
    queue.add_after("delayed", 60)
    assert (depth(registry, "0"), depth(registry, "-100")) == (2, 1)
    for _ in range(3):
        await queue.get()
    queue.add("a", priority=-100)
    assert (depth(registry, "0"), depth(registry, "-100")) == (0, 1)
    queue.shut_down()
    assert (depth(registry, "0"), depth(registry, "-100")) == (0, 0)


async def test_many_priorities_should_share_a_label(registry: CollectorRegistry, virtual_clock: VirtualClock) -> None:
    queue = build_queue(virtual_clock, registry)
    for priority in range(1, 31):
        queue.add(str(priority), priority=priority)
    samples = [sample for metric in registry.collect() for sample in metric.samples if sample.name == "workqueue_depth"]
    assert len(samples) == 26
    assert sum(sample.value for sample in samples) == 30
    assert depth(registry, "exceeded_cardinality_limit") == 6


async def test_adds_should_count_turns_wanted_and_retries_should_count_delays(
    registry: CollectorRegistry, virtual_clock: VirtualClock
) -> None:
    queue = build_queue(virtual_clock, registry)
    queue.add("a")
    queue.add("a")
    queue.add_after("b", 5)
    queue.add_after("b", 0)
    await queue.get()
    queue.add("a")
    queue.add("a")
    queue.add_rate_limited("c")
    assert registry.get_sample_value("workqueue_adds_total", LABELS) == 3
    assert registry.get_sample_value("workqueue_retries_total", LABELS) == 2
    await asyncio.sleep(2)
    assert registry.get_sample_value("workqueue_adds_total", LABELS) == 4


async def test_durations_should_be_measured_from_ready_to_handed_out_to_done(
    registry: CollectorRegistry, virtual_clock: VirtualClock
) -> None:
    queue = build_queue(virtual_clock, registry)
    queue.add_after("a", 50)
    await asyncio.sleep(53)
    queue.add("a", priority=1)  # moves it, but it has been waiting for 3 s all the same
    item = await queue.get()
    await asyncio.sleep(20)
    queue.done(item.key)
    assert registry.get_sample_value("workqueue_queue_duration_seconds_sum", LABELS) == pytest.approx(3)
    assert registry.get_sample_value("workqueue_work_duration_seconds_sum", LABELS) == pytest.approx(20)
    for name, bound, count in (("queue", "1.0", 0), ("queue", "10.0", 1), ("work", "10.0", 0), ("work", "100.0", 1)):
        sample = f"workqueue_{name}_duration_seconds_bucket"
        assert registry.get_sample_value(sample, {**LABELS, "le": bound}) == count
    assert registry.get_sample_value("workqueue_work_duration_seconds_count", LABELS) == 1


async def test_unfinished_work_should_be_told_while_it_lasts(
    registry: CollectorRegistry, virtual_clock: VirtualClock
) -> None:
    queue = build_queue(virtual_clock, registry)
    for key in ("a", "b"):
        queue.add(key)
        await queue.get()
        await asyncio.sleep(10)
    assert registry.get_sample_value("workqueue_unfinished_work_seconds", LABELS) == 30
    assert registry.get_sample_value("workqueue_longest_running_processor_seconds", LABELS) == 20
    queue.done("a")
    assert registry.get_sample_value("workqueue_longest_running_processor_seconds", LABELS) == 10


async def test_metrics_should_be_exposed_in_the_text_format(
    registry: CollectorRegistry, virtual_clock: VirtualClock
) -> None:
    build_queue(virtual_clock, registry)
    text = generate_latest(registry).decode()
    assert 'workqueue_depth{controller="test",name="test",priority="0"} 0.0' in text
    assert 'workqueue_queue_duration_seconds_bucket{controller="test",le="1e-08",name="test"} 0.0' in text
    assert 'workqueue_queue_duration_seconds_bucket{controller="test",le="+Inf",name="test"} 0.0' in text


async def test_a_name_should_be_taken_once(registry: CollectorRegistry, virtual_clock: VirtualClock) -> None:
    metrics = QueueMetrics(registry, virtual_clock)
    queue = build_queue(virtual_clock)
    metrics.record("test", queue)
    with pytest.raises(ValueError, match="test"):
        metrics.record("test", queue)
    with pytest.raises(DuplicateTimeseries):
        QueueMetrics(registry, virtual_clock)
