"""Cancelling a worker at whatever point never loses a key, a wake-up or the queue.

A schedule is played once to count its steps, that is, the callbacks of the event loop. Then it is played again for each
worker and each step, and the worker is cancelled just before that step.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVarTuple, Unpack

from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.machinery.queue.workqueue import ShutDown, WorkQueue
from support.cases import cases
from support.queues import build_queue
from support.virtualtime import VirtualClock, VirtualTimeLoop

keys = st.sampled_from("abc")
schedules = st.lists(
    st.one_of(
        st.tuples(st.just("add"), keys),
        st.tuples(st.just("add_after"), keys, st.integers(1, 3)),
        st.tuples(st.just("add_rate_limited"), keys),
        st.tuples(st.just("wait"), st.integers(0, 2)),
    ),
    min_size=4,
    max_size=12,
)
sleeps = st.sampled_from([(), (0,), (0, 0), (1,), (0, 2)])

_Ts = TypeVarTuple("_Ts")


class SteppingLoop(VirtualTimeLoop):
    """A virtual-time loop that counts its steps and interrupts before one of them."""

    def __init__(self) -> None:
        self.restart(0, lambda: None)
        super().__init__()

    def restart(self, stop_before: int, interrupt: Callable[[], object]) -> None:
        self.steps = 0
        self._stop_before = stop_before
        self._interrupt = interrupt

    def call_soon(
        self, callback: Callable[[Unpack[_Ts]], object], *args: *_Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return super().call_soon(self._step, callback, args, context=context)

    def _step(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.steps += 1
        if self.steps == self._stop_before:
            self._interrupt()
        callback(*args)


@dataclass
class Play:
    """One performance of a schedule."""

    workers: int
    sleeps: tuple[int, ...]
    """What a turn sleeps."""
    holders: set[str] = field(default_factory=set)
    ticks: int = 0
    added_at: dict[str, int] = field(default_factory=dict)
    """The tick of the last add, by key."""
    covered_at: dict[str, int] = field(default_factory=dict)
    """The tick at which the last completed turn began, by key."""
    is_over: bool = False
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def run(self, schedule: list[tuple[Any, ...]]) -> None:
        queue = build_queue(VirtualClock())
        async with asyncio.TaskGroup() as group:
            for _ in range(self.workers):
                self.start_worker(group, queue)
            for operation in schedule:
                await self.perform(operation, queue)
            await asyncio.sleep(100)
            for key, added_at in self.added_at.items():
                assert self.covered_at.get(key, 0) > added_at, f"{key} was not served"
            assert not queue.depth()
            assert not queue.running_since()
            self.is_over = True
            await queue.drain()

    def start_worker(self, group: asyncio.TaskGroup, queue: WorkQueue[str]) -> None:
        task = group.create_task(self.work(queue))
        self.tasks.append(task)

        def replace(task: asyncio.Task[None]) -> None:
            # Only if nobody else is left: a fresh worker would make up for a wake-up that was lost.
            if task.cancelled() and self.workers == 1 and not self.is_over:
                self.start_worker(group, queue)

        task.add_done_callback(replace)

    def cancel_worker(self, number: int) -> None:
        if number < len(self.tasks):
            self.tasks[number].cancel()

    async def work(self, queue: WorkQueue[str]) -> None:
        while True:
            try:
                item = await queue.get()
            except ShutDown:
                return
            assert item.key not in self.holders
            self.holders.add(item.key)
            self.ticks += 1
            began_at = self.ticks
            try:
                for seconds in self.sleeps:
                    await asyncio.sleep(seconds)
                self.covered_at[item.key] = began_at
            except asyncio.CancelledError:
                queue.add(item.key)
                raise
            finally:
                self.holders.remove(item.key)
                queue.done(item.key)

    async def perform(self, operation: tuple[Any, ...], queue: WorkQueue[str]) -> None:
        name, *arguments = operation
        if name == "wait":
            await asyncio.sleep(arguments[0])
            return
        self.ticks += 1
        self.added_at[arguments[0]] = self.ticks
        getattr(queue, name)(*arguments)


@settings(max_examples=cases(500))
@given(schedule=schedules, workers=st.integers(1, 3), sleeps=sleeps)
def test_cancelling_a_worker_at_any_step_should_lose_nothing(
    schedule: list[tuple[Any, ...]], workers: int, sleeps: tuple[int, ...]
) -> None:
    loop = SteppingLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(Play(workers, sleeps).run(schedule))
        for step in range(1, loop.steps + 1):
            for victim in range(workers):
                play = Play(workers, sleeps)
                loop.restart(step, partial(play.cancel_worker, victim))
                runner.run(play.run(schedule))
