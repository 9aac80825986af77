import asyncio
from itertools import pairwise

import pytest

from ktrainer.machinery.queue.workqueue import LOW_PRIORITY, Item, ShutDown, WorkQueue
from support.queues import build_queue, get_ready, turn
from support.virtualtime import VirtualClock, settle


@pytest.fixture
def queue(virtual_clock: VirtualClock) -> WorkQueue[str]:
    return build_queue(virtual_clock)


async def test_keys_should_come_in_the_order_of_their_first_add(queue: WorkQueue[str]) -> None:
    for key in ("b", "a", "c", "b", "a"):
        queue.add(key)
    assert await get_ready(queue) == ["b", "a", "c"]


async def test_many_adds_before_a_turn_should_give_one_turn(queue: WorkQueue[str]) -> None:
    for _ in range(100):
        queue.add("a")
    assert await turn(queue) == "a"
    assert not queue.depth()


async def test_adds_during_a_turn_should_give_exactly_one_more_after_it(queue: WorkQueue[str]) -> None:
    queue.add("a")
    item = await queue.get()
    for _ in range(100):
        queue.add("a")
    assert await get_ready(queue) == []
    queue.done(item.key)
    assert await turn(queue) == "a"
    assert not queue.depth()


async def test_a_key_that_is_taken_out_should_get_no_turn_until_it_is_added_again(queue: WorkQueue[str]) -> None:
    for key in ("a", "b", "c"):
        queue.add(key)
    queue.add_after("later", 5)
    for key in ("b", "later", "unknown"):
        queue.discard(key)
    assert queue.depth() == {0: 2}
    await asyncio.sleep(10)
    queue.add("b")
    assert await get_ready(queue) == ["a", "c", "b"]


async def test_a_queue_should_tell_whether_anybody_has_asked_for_a_key(queue: WorkQueue[str]) -> None:
    queue.add("a")
    before = queue.is_attended
    await queue.get()
    assert (before, queue.is_attended) == (False, True)


async def test_queue_should_not_hand_out_a_key_twice(queue: WorkQueue[str], virtual_clock: VirtualClock) -> None:
    turns: list[tuple[float, float]] = []

    async def work() -> None:
        while True:
            item = await queue.get()
            started_at = virtual_clock.monotonic()
            await asyncio.sleep(1)
            turns.append((started_at, virtual_clock.monotonic()))
            queue.done(item.key)

    tasks = [asyncio.create_task(work()) for _ in range(3)]
    for _ in range(25):
        queue.add("a")
        await asyncio.sleep(0.3)
    await asyncio.sleep(10)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert len(turns) == 9
    assert all(ended_at <= started_at for (_, ended_at), (started_at, _) in pairwise(turns))


async def test_a_key_added_during_its_turn_should_go_to_the_end(queue: WorkQueue[str]) -> None:
    queue.add("hot")
    item = await queue.get()
    queue.add("hot")
    queue.add("a")
    queue.add("b")
    queue.done(item.key)
    assert await get_ready(queue) == ["a", "b", "hot"]


async def test_a_hot_key_should_starve_nobody(queue: WorkQueue[str]) -> None:
    queue.add("hot")
    queue.add("a")
    seen = []
    for _ in range(4):
        item = await queue.get()
        seen.append(item.key)
        queue.add("hot")
        queue.done(item.key)
    assert seen == ["hot", "a", "hot", "hot"]


async def test_done_without_a_turn_should_be_refused(queue: WorkQueue[str]) -> None:
    queue.add("a")
    with pytest.raises(ValueError, match="'a' is not in processing"):
        queue.done("a")


async def test_a_waiting_worker_should_be_woken(queue: WorkQueue[str], virtual_clock: VirtualClock) -> None:
    asyncio.get_running_loop().call_later(3, queue.add, "a")
    assert await queue.get() == Item("a", 0)
    assert virtual_clock.monotonic() == 3


# Priorities


async def test_higher_priorities_should_go_first(queue: WorkQueue[str]) -> None:
    queue.add("low", priority=LOW_PRIORITY)
    queue.add("a")
    queue.add("high", priority=7)
    queue.add("b")
    assert [await queue.get() for _ in range(4)] == [("high", 7), ("a", 0), ("b", 0), ("low", LOW_PRIORITY)]


async def test_raising_a_priority_should_move_the_key_to_the_end_of_the_new_one(queue: WorkQueue[str]) -> None:
    queue.add("low", priority=LOW_PRIORITY)
    queue.add("a")
    queue.add("low")
    queue.add("b")
    assert await get_ready(queue) == ["a", "low", "b"]


async def test_a_place_that_was_given_up_should_not_count_any_more(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=LOW_PRIORITY)
    queue.add("b", priority=LOW_PRIORITY)
    queue.add("a")
    assert await queue.get() == ("a", 0)
    queue.add("a", priority=LOW_PRIORITY)
    assert await get_ready(queue) == ["b"]
    queue.done("a")
    assert await get_ready(queue) == ["a"]


async def test_lowering_a_priority_should_do_nothing(queue: WorkQueue[str]) -> None:
    queue.add("a", priority=5)
    queue.add("b", priority=5)
    queue.add("a", priority=LOW_PRIORITY)
    queue.add_after("a", 1, priority=LOW_PRIORITY)
    assert [await queue.get() for _ in range(2)] == [("a", 5), ("b", 5)]


async def test_adds_during_a_turn_should_keep_the_highest_priority(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    for priority in (LOW_PRIORITY, 9, 1):
        queue.add("a", priority=priority)
    queue.done("a")
    assert await queue.get() == ("a", 9)


@pytest.mark.parametrize("first, second", [(5, -1), (-1, 5)])
async def test_a_delayed_key_should_keep_the_highest_priority(queue: WorkQueue[str], first: int, second: int) -> None:
    queue.add_after("a", 5, priority=first)
    queue.add_after("a", 5, priority=second)
    queue.add_after("b", 5, priority=first)
    queue.add("b", priority=second)
    assert [await queue.get() for _ in range(2)] == [("b", 5), ("a", 5)]


async def test_a_ready_key_should_take_the_priority_of_a_delayed_add(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    queue.add_after("b", 60, priority=3)
    assert [await queue.get() for _ in range(2)] == [("b", 3), ("a", 0)]


async def test_a_delayed_key_should_queue_up_from_when_it_is_due(queue: WorkQueue[str]) -> None:
    queue.add_after("delayed", 5)
    queue.add("a")
    await asyncio.sleep(6)
    queue.add("b")
    assert await get_ready(queue) == ["a", "delayed", "b"]


async def test_a_key_in_processing_should_not_block_lower_priorities(queue: WorkQueue[str]) -> None:
    queue.add("high", priority=9)
    await queue.get()
    queue.add("high", priority=9)
    queue.add("low", priority=LOW_PRIORITY)
    assert await get_ready(queue) == ["low"]


# Shutting down


async def test_shutting_down_should_drop_what_is_queued_and_refuse_more(queue: WorkQueue[str]) -> None:
    queue.add("ready")
    queue.add_after("delayed", 1)
    queue.shut_down()
    queue.add("late")
    queue.add_after("late", 1)
    queue.add_rate_limited("late")
    await asyncio.sleep(10)
    assert not queue.depth()
    with pytest.raises(ShutDown):
        await queue.get()


async def test_shutting_down_should_release_every_waiting_worker(queue: WorkQueue[str]) -> None:
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await settle()
    queue.shut_down()
    queue.shut_down()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert [type(result) for result in results] == [ShutDown] * 3


async def test_a_key_that_was_being_handed_over_at_shutdown_should_not_block_the_queue(queue: WorkQueue[str]) -> None:
    worker = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    queue.shut_down()
    with pytest.raises(ShutDown):
        await worker
    async with asyncio.timeout(1):
        await queue.drain()


async def test_a_turn_may_end_after_shutdown_without_another(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.shut_down()
    queue.add("a")
    queue.done("a")
    assert not queue.depth()


async def test_draining_should_wait_for_the_turns_under_way(queue: WorkQueue[str], virtual_clock: VirtualClock) -> None:
    for seconds, key in enumerate(("a", "b", "c")):
        queue.add(key)
        await queue.get()
        asyncio.get_running_loop().call_later(5 + seconds, queue.done, key)
    await queue.drain()
    assert virtual_clock.monotonic() == 7
    await queue.drain()


async def test_draining_an_idle_queue_should_end_at_once(queue: WorkQueue[str], virtual_clock: VirtualClock) -> None:
    queue.add("a")
    await queue.drain()
    assert virtual_clock.monotonic() == 0


# Cancellation


async def test_a_cancelled_get_should_not_take_a_key_with_it(queue: WorkQueue[str]) -> None:
    worker = asyncio.create_task(queue.get())
    await settle()
    queue.add("a")
    worker.cancel()
    await asyncio.wait([worker])
    assert worker.cancelled()
    assert await turn(queue) == "a"


async def test_a_worker_that_is_cancelled_when_woken_should_wake_the_next(queue: WorkQueue[str]) -> None:
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await settle()
    queue.add("a")
    first.cancel()
    assert (await second).key == "a"
    assert first.cancelled()


async def test_a_worker_that_left_should_not_be_woken_in_place_of_another(queue: WorkQueue[str]) -> None:
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await settle()
    first.cancel()
    queue.add("a")
    assert (await second).key == "a"


async def test_waiting_with_timeouts_should_leave_nothing_behind(queue: WorkQueue[str]) -> None:
    for _ in range(100):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(queue.get(), 1)
    assert not queue._waiters
