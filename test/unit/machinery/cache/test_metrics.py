import asyncio

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.client.errors import StreamIdle
from ktrainer.machinery.cache.metrics import CacheMetrics
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.record import EVENT_TYPES, Refusal, RelistReason, SkipReason
from support.informers import WIDGET_VIEW, Recorder, build_cache, informing
from support.modelevents import api_error, line_of
from support.modelserver import ModelServer
from support.virtualtime import VirtualClock, settle

NAME = "widgets.example.com"


def value(registry: CollectorRegistry, metric: str, **labels: str) -> float | None:
    return registry.get_sample_value(f"reflector_{metric}", {"name": NAME, **labels})


async def test_all_series_should_be_there_from_the_start() -> None:
    registry = CollectorRegistry()
    build_cache(ModelServer(), registry=registry).register(WIDGET_VIEW)
    assert [value(registry, "watch_events_total", type=kind) for kind in EVENT_TYPES] == [0] * 5
    assert [value(registry, "relist_total", reason=reason) for reason in RelistReason] == [0] * 6
    assert [value(registry, "skipped_objects_total", reason=reason) for reason in SkipReason] == [0] * 3
    assert [value(registry, "refused", reason=refusal) for refusal in Refusal] == [0] * 3
    for metric in (
        "lists_total",
        "list_duration_seconds_count",
        "list_items_count",
        "watches_total",
        "watch_duration_seconds_sum",
        "short_watches_total",
        "watch_idle_timeouts_total",
        "handler_errors_total",
        "unreachable",
        "last_event_age_seconds",
        "store_objects",
        "store_resource_version",
        "fifo_depth",
    ):
        assert value(registry, metric) == 0, metric


async def test_the_metrics_should_tell_what_happened() -> None:
    registry = CollectorRegistry()
    server = ModelServer(end_bookmark_seconds=3)
    key = server.create("a")
    server.create("b")
    async with informing(server, registry=registry) as (informer, _):
        await asyncio.sleep(4)
        assert (value(registry, "lists_total"), value(registry, "list_items_sum")) == (1, 2)
        assert value(registry, "list_duration_seconds_sum") == 3
        assert value(registry, "last_event_age_seconds") == 1
        server.update(key)
        server.send(line_of("ADDED", {"kind": "Table", "apiVersion": "v1", "metadata": {}}))
        server.send(line_of("ADDED", {"metadata": 7}))
        server.delete(key)
        await settle()
        assert value(registry, "last_event_age_seconds") == 0
        assert value(registry, "watch_events_total", type="ADDED") == 4
        assert value(registry, "watch_events_total", type="MODIFIED") == 1
        assert value(registry, "watch_events_total", type="DELETED") == 1
        assert value(registry, "watch_events_total", type="BOOKMARK") == 1
        assert value(registry, "skipped_objects_total", reason="wrong_kind") == 1
        assert value(registry, "skipped_objects_total", reason="undecodable") == 1
        assert (value(registry, "store_objects"), value(registry, "store_resource_version")) == (1, 104)
        server.send_error(410, "Expired")
        await settle()
        assert value(registry, "watch_events_total", type="ERROR") == 1
        assert value(registry, "relist_total", reason="expired") == 1
        assert (value(registry, "watches_total"), value(registry, "watch_duration_seconds_sum")) == (1, 4)
        assert informer.fifo_depth == 0


async def test_refusals_should_show_while_they_last() -> None:
    registry = CollectorRegistry()
    server = ModelServer(outage=api_error(403, "Forbidden"))
    async with informing(server, registry=registry):
        await settle()
        assert [value(registry, "refused", reason=refusal) for refusal in Refusal] == [0, 1, 0]
        server.outage = api_error(404, "NotFound")
        await asyncio.sleep(5)
        assert [value(registry, "refused", reason=refusal) for refusal in Refusal] == [0, 0, 1]
        server.outage = None
        await asyncio.sleep(12)
        assert [value(registry, "refused", reason=refusal) for refusal in Refusal] == [0, 0, 0]


async def test_watches_that_were_no_good_should_be_counted() -> None:
    registry = CollectorRegistry()
    server = ModelServer()
    async with informing(server, registry=registry):
        await asyncio.sleep(2)
        server.cut()
        await settle()
        server.cut()
        await asyncio.sleep(3)
        assert value(registry, "short_watches_total") == 1
        assert value(registry, "relist_total", reason="short_watch") == 1
        for stream in server.streams:
            stream.break_off(StreamIdle("silent"))
        await settle()
        assert value(registry, "watch_idle_timeouts_total") == 1


async def test_handlers_that_fail_should_be_counted() -> None:
    class Failing(Recorder):
        def on_add(self, obj: CachedObject, is_initial: bool) -> None:
            raise RuntimeError

    registry = CollectorRegistry()
    server = ModelServer()
    server.create("a")
    async with informing(server, registry=registry) as (informer, _):
        registration = informer.add_handler(Failing())
        await registration.wait_synced()
        assert value(registry, "handler_errors_total") == 1


async def test_two_informers_of_one_name_should_be_refused(virtual_clock: VirtualClock) -> None:
    metrics = CacheMetrics(CollectorRegistry(), virtual_clock)
    informer = build_cache(ModelServer()).register(WIDGET_VIEW)
    metrics.record("same", informer)
    with pytest.raises(ValueError, match="same"):
        metrics.record("same", informer)
