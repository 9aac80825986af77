"""How much CPU time callbacks of event loops use."""

import asyncio
import threading
import time

from support.loopcpu import CallbackTimes, measured_callbacks


def compute() -> None:
    began = time.thread_time()
    while time.thread_time() - began < 0.03:
        pass


async def call_back() -> None:
    asyncio.get_running_loop().call_soon(compute)
    await asyncio.sleep(0)
    await asyncio.sleep(0)


def slow_of(thread: threading.Thread | None = None) -> CallbackTimes:
    with measured_callbacks(0.02) as times:
        if thread is None:
            asyncio.run(call_back())
        else:
            thread.start()
            thread.join()
    return times


def test_a_callback_that_computes_for_long_should_be_told() -> None:
    (slow,) = slow_of().slow
    assert "compute" in slow[1]


def test_a_step_of_a_task_should_be_told_by_its_task() -> None:
    async def compute_for_long() -> None:
        compute()

    with measured_callbacks(0.02) as times:
        asyncio.run(compute_for_long())
    (slow,) = times.slow
    assert "compute_for_long" in slow[1]


def test_a_step_of_the_test_itself_should_not_count() -> None:
    async def test_itself() -> None:
        compute()
        await asyncio.create_task(call_back())

    with measured_callbacks(0.02) as times:
        asyncio.run(test_itself())
    assert [name for _, name in times.slow if "test_itself" in name] == []
    assert len(times.slow) == 1, "what it starts does"


def test_the_loop_of_another_thread_should_not_count() -> None:
    assert slow_of(threading.Thread(target=lambda: asyncio.run(call_back()))).slow == []
