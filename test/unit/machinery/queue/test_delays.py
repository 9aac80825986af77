import asyncio

import pytest

from ktrainer.machinery.queue.workqueue import WorkQueue
from support.queues import build_queue, get_ready, turn
from support.virtualtime import ManualClock, VirtualClock


@pytest.fixture
def queue(virtual_clock: VirtualClock) -> WorkQueue[str]:
    return build_queue(virtual_clock)


@pytest.mark.parametrize("seconds", [0, -1])
async def test_no_delay_should_mean_now(queue: WorkQueue[str], seconds: float) -> None:
    queue.add_after("a", seconds)
    assert await get_ready(queue) == ["a"]


async def test_delayed_keys_should_come_when_they_are_due(queue: WorkQueue[str], virtual_clock: VirtualClock) -> None:
    queue.add_after("late", 25)
    queue.add_after("early", 2.5)
    assert not queue.depth()
    assert (await turn(queue), virtual_clock.monotonic()) == ("early", 2.5)
    assert (await turn(queue), virtual_clock.monotonic()) == ("late", 25)


@pytest.mark.parametrize("delays, due", [((5, 2), 2), ((2, 5), 2), ((5, 0), 0), ((0, 5), 0)])
async def test_the_earlier_of_two_times_should_count(
    queue: WorkQueue[str], virtual_clock: VirtualClock, delays: tuple[float, float], due: float
) -> None:
    for delay in delays:
        queue.add_after("a", delay)
    assert (await turn(queue), virtual_clock.monotonic()) == ("a", due)
    await asyncio.sleep(10)
    assert not queue.depth()


async def test_a_key_that_is_due_during_its_turn_should_get_another(
    queue: WorkQueue[str], virtual_clock: VirtualClock
) -> None:
    queue.add("a")
    await queue.get()
    queue.add_after("a", 1)
    await asyncio.sleep(2)
    assert await get_ready(queue) == []
    queue.done("a")
    assert (await turn(queue), virtual_clock.monotonic()) == ("a", 2)


async def test_a_delay_should_outlive_the_end_of_the_turn(queue: WorkQueue[str], virtual_clock: VirtualClock) -> None:
    queue.add("a")
    await queue.get()
    queue.add_after("a", 5)
    queue.done("a")
    assert not queue.depth()
    assert (await turn(queue), virtual_clock.monotonic()) == ("a", 5)


async def test_time_that_the_machine_slept_should_count() -> None:
    clock = ManualClock()
    queue = build_queue(clock)
    queue.add_after("a", 3600)
    clock.advance(3600)
    async with asyncio.timeout(10.1):
        assert await turn(queue) == "a"


async def test_asking_for_a_later_time_should_not_change_the_order(queue: WorkQueue[str]) -> None:
    queue.add_after("a", 5)
    queue.add_after("b", 5)
    queue.add_after("a", 6)
    assert [await turn(queue), await turn(queue)] == ["a", "b"]


async def test_a_timer_that_fires_early_by_a_rounding_error_should_do() -> None:
    clock = ManualClock()
    queue = build_queue(clock)
    queue.add_after("a", 3)
    clock.advance(3 - 1e-9)
    async with asyncio.timeout(3.1):
        assert await turn(queue) == "a"


async def test_a_timer_that_fires_too_early_should_be_set_again() -> None:
    clock = ManualClock()
    queue = build_queue(clock)
    queue.add_after("a", 3)
    await asyncio.sleep(5)
    assert not queue.depth()
    clock.advance(3)
    assert await turn(queue) == "a"


class CountingClock(ManualClock):
    reads = 0

    def monotonic(self) -> float:
        self.reads += 1
        return super().monotonic()


async def test_delays_should_need_no_tasks_and_leave_no_timer_behind() -> None:
    clock = CountingClock()
    queue = build_queue(clock)
    for number in range(1000):
        queue.add_after(str(number), 1000 - number)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    queue.shut_down()
    reads = clock.reads
    await asyncio.sleep(2000)
    assert clock.reads == reads


async def test_entries_that_no_longer_count_should_not_pile_up(queue: WorkQueue[str]) -> None:
    queue.add("other", priority=10**9)
    for number in range(10_000):
        queue.add("a", priority=number)
        queue.add_after("b", 10_000)
        queue.add("b", priority=number)
    for number in range(10_000):
        queue.add_after("c", 20_000 - number)
    assert len(queue._heap) + len(queue._delays._heap) < 300
    assert [await turn(queue) for _ in range(4)] == ["other", "a", "b", "c"]


async def test_retries_should_wait_longer_and_longer(queue: WorkQueue[str], virtual_clock: VirtualClock) -> None:
    turns = []
    for _ in range(3):
        queue.add_rate_limited("a", priority=4)
        assert await queue.get() == ("a", 4)
        turns.append(virtual_clock.monotonic())
        queue.done("a")
    assert turns == [1, 1 + 2, 1 + 2 + 4]
    assert queue.num_requeues("a") == 3


async def test_forgetting_should_clear_the_failures_but_not_the_queue(
    queue: WorkQueue[str], virtual_clock: VirtualClock
) -> None:
    queue.add_rate_limited("a")
    queue.add_rate_limited("a")
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert (await turn(queue), virtual_clock.monotonic()) == ("a", 1)
    queue.add_rate_limited("a")
    assert (await turn(queue), virtual_clock.monotonic()) == ("a", 2)
