import asyncio
from collections.abc import Awaitable, Callable

import pytest

from ktrainer.aio.supervisor import Supervisor, TaskDied
from support.virtualtime import VirtualClock, settle


async def supervise(body: Callable[[Supervisor], Awaitable[None]]) -> None:
    async with Supervisor() as supervisor:
        await body(supervisor)


async def run_for_ever() -> None:
    await asyncio.Event().wait()


async def fail_after(seconds: float) -> None:
    await asyncio.sleep(seconds)
    raise ValueError("broken")


async def end_slowly(seconds: float, ended: Callable[[], None] = lambda: None) -> None:
    try:
        await run_for_ever()
    finally:
        await asyncio.sleep(seconds)
        ended()


async def test_a_task_that_raises_should_end_the_scope(virtual_clock: VirtualClock) -> None:
    async def body(supervisor: Supervisor) -> None:
        loops = supervisor.group("loops")
        loops.start("reader", fail_after(3))
        loops.start("other", run_for_ever())
        await run_for_ever()

    with pytest.raises(TaskDied, match=r"loops/reader.*broken") as died:
        await supervise(body)
    assert virtual_clock.monotonic() == 3
    assert died.value.name == "loops/reader"
    assert isinstance(died.value.__cause__, ValueError)


async def test_the_scope_should_take_its_cancellation_of_the_body_back() -> None:
    async def body(supervisor: Supervisor) -> None:
        supervisor.group("loops").start("reader", fail_after(3))
        await run_for_ever()

    with pytest.raises(TaskDied):
        await supervise(body)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_task_that_returns_should_end_the_scope() -> None:
    async def body(supervisor: Supervisor) -> None:
        supervisor.group("loops").start("reader", asyncio.sleep(1))
        await run_for_ever()

    with pytest.raises(TaskDied, match=r"loops/reader died: it returned") as died:
        await supervise(body)
    assert died.value.cause is None


async def test_a_task_that_cancels_itself_should_count_as_dead() -> None:
    async def cancel_itself() -> None:
        raise asyncio.CancelledError

    async def body(supervisor: Supervisor) -> None:
        supervisor.group("loops").start("reader", cancel_itself())
        await run_for_ever()

    with pytest.raises(TaskDied, match="CancelledError"):
        await supervise(body)


async def test_a_death_should_be_visible_while_the_rest_still_stops() -> None:
    seen: list[tuple[str, ...]] = []

    async def body(supervisor: Supervisor) -> None:
        supervisor.group("loops").start("reader", fail_after(1))
        seen.append(supervisor.dead)
        try:
            await run_for_ever()
        finally:
            seen.append(supervisor.dead)

    with pytest.raises(TaskDied):
        await supervise(body)
    assert seen == [(), ("loops/reader",)]


async def test_the_body_should_decide_the_order_of_stopping_even_after_a_death(virtual_clock: VirtualClock) -> None:
    order: list[str] = []

    async def body(supervisor: Supervisor) -> None:
        first, second = supervisor.group("first"), supervisor.group("second")
        first.start("slow", end_slowly(2, lambda: order.append("first")))
        first.start("broken", fail_after(1))
        second.start("slow", end_slowly(4, lambda: order.append("second")))
        try:
            await run_for_ever()
        finally:
            supervisor.begin_shutdown()
            await first.stop()
            await second.stop()

    with pytest.raises(TaskDied, match="first/broken"):
        await supervise(body)
    assert order == ["first", "second"]
    assert virtual_clock.monotonic() == 1 + 2 + 4


async def test_leaving_the_scope_should_stop_the_latest_group_first() -> None:
    order: list[str] = []
    async with Supervisor() as supervisor:
        supervisor.group("servers").start("task", end_slowly(1, lambda: order.append("servers")))
        supervisor.group("caches").start("task", end_slowly(1, lambda: order.append("caches")))
        supervisor.group("workers").start("task", end_slowly(1, lambda: order.append("workers")))
        await settle()
    assert order == ["workers", "caches", "servers"]


async def test_stopping_should_ask_first_and_cancel_after_the_grace_period(virtual_clock: VirtualClock) -> None:
    asked = asyncio.Event()
    events: list[str] = []

    async def finish_when_asked(seconds: float) -> None:
        await asked.wait()
        await asyncio.sleep(seconds)
        events.append(f"finished after {seconds}")

    async with Supervisor() as supervisor:
        workers = supervisor.group("workers")
        workers.start("quick", finish_when_asked(5), stop=asked.set)
        workers.start("slow", finish_when_asked(50), stop=asked.set)
        workers.start("unasked", run_for_ever())
        await settle()
        assert await workers.stop(grace_seconds=20) == ("workers/slow",)
    assert events == ["finished after 5"]
    assert virtual_clock.monotonic() == 20


async def test_stopping_should_not_wait_longer_than_the_tasks_need(virtual_clock: VirtualClock) -> None:
    async with Supervisor() as supervisor:
        workers = supervisor.group("workers")
        workers.start("worker", end_slowly(3))
        await settle()
        assert await workers.stop(grace_seconds=20) == ()
        assert await workers.stop(grace_seconds=20) == ()
    assert virtual_clock.monotonic() == 3


async def test_without_grace_a_task_should_be_cancelled_rather_than_asked() -> None:
    asked: list[bool] = []
    async with Supervisor() as supervisor:
        workers = supervisor.group("workers")
        workers.start("worker", run_for_ever(), stop=lambda: asked.append(True))
        await settle()
        await workers.stop()
    assert asked == []


async def test_a_stop_that_fails_should_not_keep_the_others_running() -> None:
    def fail() -> None:
        raise ValueError("cannot stop")

    async def body(supervisor: Supervisor) -> None:
        workers = supervisor.group("workers")
        workers.start("broken", run_for_ever(), stop=fail)
        workers.start("other", run_for_ever())
        await settle()
        supervisor.begin_shutdown()
        assert await workers.stop(grace_seconds=20) == ()

    with pytest.raises(TaskDied, match="cannot stop"):
        await supervise(body)


async def test_a_task_that_fails_while_stopping_should_be_reported_at_the_end() -> None:
    async def fail_at_the_end() -> None:
        try:
            await run_for_ever()
        finally:
            raise ValueError("broken")

    stopped: list[str] = []

    async def body(supervisor: Supervisor) -> None:
        loops, others = supervisor.group("loops"), supervisor.group("others")
        loops.start("reader", fail_at_the_end())
        others.start("other", run_for_ever())
        await settle()
        supervisor.begin_shutdown()
        await loops.stop()
        stopped.append("loops")
        await others.stop()
        stopped.append("others")

    with pytest.raises(TaskDied, match="loops/reader"):
        await supervise(body)
    assert stopped == ["loops", "others"]


async def test_a_death_during_shutdown_should_not_disturb_it(virtual_clock: VirtualClock) -> None:
    async def body(supervisor: Supervisor) -> None:
        servers, workers = supervisor.group("servers"), supervisor.group("workers")
        servers.start("broken", fail_after(1))
        workers.start("slow", end_slowly(10))
        await settle()
        supervisor.begin_shutdown()
        assert await workers.stop(grace_seconds=20) == ()

    with pytest.raises(TaskDied, match="servers/broken"):
        await supervise(body)
    assert virtual_clock.monotonic() == 10


async def test_a_stopped_group_should_start_nothing() -> None:
    async with Supervisor() as supervisor:
        workers = supervisor.group("workers")
        await workers.stop()
        with pytest.raises(RuntimeError, match="workers has been stopped"):
            workers.start("late", run_for_ever())


async def test_an_error_of_the_body_should_stop_the_tasks_and_pass(virtual_clock: VirtualClock) -> None:
    async def body(supervisor: Supervisor) -> None:
        supervisor.group("loops").start("reader", end_slowly(2))
        await settle()
        raise KeyError

    with pytest.raises(KeyError):
        await supervise(body)
    assert virtual_clock.monotonic() == 2


async def test_a_cancellation_from_outside_should_stop_the_tasks_and_pass(virtual_clock: VirtualClock) -> None:
    async def body(supervisor: Supervisor) -> None:
        supervisor.group("loops").start("reader", end_slowly(2))
        await run_for_ever()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(supervise(body), 5)
    assert virtual_clock.monotonic() == 7


async def test_a_cancellation_from_outside_should_win_over_a_death() -> None:
    async def body(supervisor: Supervisor) -> None:
        supervisor.group("loops").start("reader", fail_after(1))
        try:
            await run_for_ever()
        finally:
            await asyncio.sleep(10)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(supervise(body), 5)


async def test_a_cancellation_while_leaving_should_neither_leave_tasks_nor_get_lost(
    virtual_clock: VirtualClock,
) -> None:
    ended: list[float] = []

    async def body(supervisor: Supervisor) -> None:
        loops = supervisor.group("loops")
        loops.start("slow", end_slowly(20, lambda: ended.append(virtual_clock.monotonic())))
        await settle()

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(supervise(body), 5)
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert ended == []  # the second cancellation cut the clean-up short
    assert virtual_clock.monotonic() == 5
