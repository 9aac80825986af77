"""The workqueue does exactly what a slow and simple model of it does, whatever is asked of both."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from ktrainer.machinery.queue.workqueue import ShutDown, WorkQueue
from support.cases import cases
from support.queues import DoublingLimiter, build_queue
from support.virtualtime import VirtualClock, VirtualTimeLoop, settle

WORKERS = 3
SAME_TIME = 1e-6

keys = st.sampled_from("abc")
priorities = st.sampled_from([-100, 0, 7])
numbers = st.integers(0, WORKERS - 1)
operations = st.one_of(
    st.tuples(st.just("add"), keys, priorities),
    st.tuples(st.just("add_after"), keys, st.integers(-1, 30), priorities),
    st.tuples(st.just("add_rate_limited"), keys, priorities),
    st.tuples(st.just("discard"), keys),
    st.tuples(st.just("forget"), keys),
    st.tuples(st.just("get"), numbers),
    st.tuples(st.just("get"), numbers),
    st.tuples(st.just("done"), numbers),
    st.tuples(st.just("done"), numbers),
    st.tuples(st.just("pass_time"), st.integers(1, 40)),
)

# Long ones find more, short ones explain better.
scripts = st.one_of(st.lists(operations, max_size=8), st.lists(operations, min_size=25, max_size=40))


@dataclass
class Model:
    """Lists and loops only; the order of `ready` and `delayed` is the order of arrival."""

    now: float
    limiter: DoublingLimiter = field(default_factory=DoublingLimiter)
    ready: list[tuple[str, int]] = field(default_factory=list)
    delayed: list[tuple[float, str, int]] = field(default_factory=list)
    processing: list[str] = field(default_factory=list)
    waiting_workers: int = 0
    handed_out: list[tuple[str, int]] = field(default_factory=list)
    adds: int = 0
    retries: int = 0

    def add(self, key: str, priority: int) -> None:
        delayed = [entry for entry in self.delayed if entry[1] == key]
        self.delayed = [entry for entry in self.delayed if entry[1] != key]
        self.make_ready(key, max([priority, *(entry[2] for entry in delayed)]))
        self.hand_out()

    def make_ready(self, key: str, priority: int) -> None:
        former = [entry for entry in self.ready if entry[0] == key]
        if not former:
            self.adds += 1
        elif priority <= former[0][1]:
            return
        self.ready = [entry for entry in self.ready if entry[0] != key]
        self.ready.append((key, priority))

    def add_after(self, key: str, seconds: float, priority: int) -> None:
        if seconds <= 0:
            self.add(key, priority)
            return
        self.retries += 1
        if any(entry[0] == key for entry in self.ready):
            self.make_ready(key, priority)
            return
        former = [entry for entry in self.delayed if entry[1] == key]
        due = min([self.now + seconds, *(entry[0] for entry in former)])
        entry = (due, key, max([priority, *(entry[2] for entry in former)]))
        if former != [entry]:
            self.delayed = [entry for entry in self.delayed if entry[1] != key]
            self.delayed.append(entry)

    def add_rate_limited(self, key: str, priority: int) -> None:
        self.add_after(key, self.limiter.when(key), priority)

    def discard(self, key: str) -> None:
        self.ready = [entry for entry in self.ready if entry[0] != key]
        self.delayed = [entry for entry in self.delayed if entry[1] != key]

    def get(self) -> None:
        self.waiting_workers += 1
        self.hand_out()

    def done(self, key: str) -> None:
        self.processing.remove(key)
        again = [entry for entry in self.ready if entry[0] == key]
        self.ready = [entry for entry in self.ready if entry[0] != key] + again
        self.hand_out()

    def hand_out(self) -> None:
        while self.waiting_workers:
            free = [entry for entry in self.ready if entry[0] not in self.processing]
            if not free:
                return
            first = max(free, key=lambda entry: entry[1])  # the first of several
            self.ready.remove(first)
            self.processing.append(first[0])
            self.waiting_workers -= 1
            self.handed_out.append(first)

    def pass_time(self, now: float) -> None:
        self.now = now
        while due := sorted((entry for entry in self.delayed if entry[0] <= self.now + SAME_TIME), key=lambda e: e[0]):
            for entry in due:
                if entry[0] <= due[0][0] + SAME_TIME:
                    self.delayed.remove(entry)
                    self.make_ready(entry[1], entry[2])
            self.hand_out()


class Workers:
    """Three who get keys and hold them until they are told to be done."""

    def __init__(self, queue: WorkQueue[str]) -> None:
        self.queue = queue
        self.gets: dict[int, asyncio.Task[None]] = {}
        self.held: dict[int, str] = {}
        self.handed_out: list[tuple[str, int]] = []

    def is_free(self, worker: int) -> bool:
        return worker not in self.gets and worker not in self.held

    def get(self, worker: int) -> None:
        self.gets[worker] = asyncio.create_task(self._get(worker))

    async def _get(self, worker: int) -> None:
        try:
            item = await self.queue.get()
        except ShutDown:
            return
        finally:
            del self.gets[worker]
        assert item.key not in self.held.values()
        self.held[worker] = item.key
        self.handed_out.append(item)


async def perform(operation: tuple[Any, ...], workers: Workers, model: Model) -> None:
    """Do the same to the queue and to the model."""
    queue = workers.queue
    match operation:
        case ("add", key, priority):
            queue.add(key, priority=priority)
            model.add(key, priority)
        case ("add_after", key, seconds, priority):
            queue.add_after(key, seconds, priority=priority)
            model.add_after(key, seconds, priority)
        case ("add_rate_limited", key, priority):
            queue.add_rate_limited(key, priority=priority)
            model.add_rate_limited(key, priority)
        case ("discard", key):
            queue.discard(key)
            model.discard(key)
        case ("forget", key):
            queue.forget(key)
            model.limiter.forget(key)
        case ("get", worker) if workers.is_free(worker):
            workers.get(worker)
            model.get()
        case ("done", worker) if worker in workers.held:
            model.done(workers.held[worker])
            queue.done(workers.held.pop(worker))
        case ("pass_time", seconds):
            await asyncio.sleep(seconds)
            model.pass_time(VirtualClock().monotonic())
    await settle()
    assert workers.handed_out == model.handed_out
    assert sorted(workers.held.values()) == sorted(model.processing)
    assert queue.depth() == Counter(priority for _, priority in model.ready)


@settings(max_examples=cases(10_000))
@given(script=scripts)
def test_queue_should_do_what_the_model_does_and_lose_nothing(script: list[tuple[Any, ...]]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:  # the loop of pytest-asyncio is in slow debug mode
        runner.run(play(script))


async def play(script: list[tuple[Any, ...]]) -> None:
    clock, registry = VirtualClock(), CollectorRegistry()
    workers, model = Workers(build_queue(clock, registry)), Model(clock.monotonic())
    turns_before: dict[str, int] = {}
    for operation in script:
        if operation[0].startswith("add"):
            turns_before[operation[1]] = len(workers.handed_out)
        elif operation[0] == "discard":
            turns_before.pop(operation[1], None)
        await perform(operation, workers, model)
    check_metrics(registry, model)

    await perform(("pass_time", 70), workers, model)  # longer than any delay
    while model.ready or workers.held:
        for worker in range(WORKERS):
            await perform(("done", worker), workers, model)
            await perform(("get", worker), workers, model)
    assert not model.delayed
    for key, turns in turns_before.items():
        assert key in [handed_out for handed_out, _ in workers.handed_out[turns:]]
    await workers.queue.drain()
    await settle()
    assert not workers.gets


@settings(max_examples=cases(2_000))
@given(script=scripts, late=operations)
def test_shutting_down_at_any_time_should_leave_nothing(script: list[tuple[Any, ...]], late: tuple[Any, ...]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(play_and_shut_down(script, late))


async def play_and_shut_down(script: list[tuple[Any, ...]], late: tuple[Any, ...]) -> None:
    clock = VirtualClock()
    workers, model = Workers(build_queue(clock)), Model(clock.monotonic())
    for operation in script:
        await perform(operation, workers, model)
    workers.queue.shut_down()
    if late[0].startswith("add"):
        workers.queue.add(late[1])
    await asyncio.sleep(100)
    assert not workers.queue.depth()
    assert not workers.gets
    assert workers.handed_out == model.handed_out
    for key in workers.held.values():
        workers.queue.done(key)
    await workers.queue.drain()


def check_metrics(registry: CollectorRegistry, model: Model) -> None:
    labels = {"name": "test", "controller": "test"}
    samples = [sample for metric in registry.collect() for sample in metric.samples if sample.name == "workqueue_depth"]
    depth = {int(sample.labels["priority"]): sample.value for sample in samples if sample.value}
    assert depth == Counter(priority for _, priority in model.ready)
    assert registry.get_sample_value("workqueue_adds_total", labels) == model.adds
    assert registry.get_sample_value("workqueue_retries_total", labels) == model.retries
    turns = registry.get_sample_value("workqueue_queue_duration_seconds_count", labels)
    assert turns == len(model.handed_out)
