"""The queue of a controller that waits for its turn to lead."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.cache.store import Store
from ktrainer.machinery.control.handlers import EnqueueForObject, EnqueueForOwner
from ktrainer.machinery.control.standby import StandbyQueue
from ktrainer.machinery.queue.metrics import QueueMetrics
from ktrainer.machinery.queue.ratelimiter import ExponentialLimiter
from ktrainer.machinery.queue.workqueue import LOW_PRIORITY, WorkQueue
from support.modelserver import WIDGETS
from support.widgets import owners, widget

if TYPE_CHECKING:
    from ktrainer.machinery.cache.objects import CachedObject
    from support.virtualtime import VirtualClock

CHILD = widget("child", owner_references=owners("a", kind="Widget"))


class Bench:
    """Widgets, whose changes and those of their children are told to a queue."""

    def __init__(self, clock: VirtualClock) -> None:
        self.widgets: Store[CachedObject] = Store({})
        metrics = QueueMetrics(CollectorRegistry(), clock)
        self.queue = WorkQueue[ObjectKey]("test", limiter=ExponentialLimiter(Random(1)), clock=clock, metrics=metrics)
        standby = StandbyQueue(self.queue, self.widgets)
        self.own = EnqueueForObject(standby)
        self.children = EnqueueForOwner(standby, WIDGETS)

    def create(self, *, is_initial: bool = False) -> None:
        self.widgets.put(widget().key, widget())
        self.own.on_add(widget(), is_initial)

    def delete(self) -> None:
        self.widgets.remove(widget().key)
        self.own.on_delete(widget(), False)


@pytest.fixture
def bench(virtual_clock: VirtualClock) -> Bench:
    return Bench(virtual_clock)


async def test_before_anybody_works_the_queue_should_hold_what_is_there(bench: Bench) -> None:
    bench.create(is_initial=True)
    assert bench.queue.depth() == {LOW_PRIORITY: 1}
    bench.children.on_add(CHILD, False)
    assert bench.queue.depth() == {0: 1}
    bench.delete()
    assert bench.queue.depth() == {}


async def test_what_an_object_leaves_behind_should_not_bring_its_key_back(bench: Bench) -> None:
    bench.create()
    bench.delete()
    bench.children.on_delete(CHILD, False)
    assert bench.queue.depth() == {}
    bench.create()
    assert bench.queue.depth() == {0: 1}


async def test_once_somebody_works_a_deletion_should_have_its_turn(bench: Bench) -> None:
    bench.create()
    item = await bench.queue.get()
    bench.queue.done(item.key)
    bench.delete()
    assert (await bench.queue.get()).key == item.key
    bench.queue.done(item.key)
    bench.children.on_delete(CHILD, False)
    assert (await bench.queue.get()).key == item.key
    bench.queue.done(item.key)
