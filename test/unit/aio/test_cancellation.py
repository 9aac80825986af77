import asyncio
from contextlib import suppress

import pytest

from ktrainer.aio.cancellation import is_cancelled, uncancelled


async def test_the_end_of_our_own_task_should_be_told_from_that_of_others() -> None:
    told: list[bool] = []

    async def wait_for(future: asyncio.Future[None]) -> None:
        try:
            await future
        except asyncio.CancelledError as error:
            told.append(is_cancelled(error))

    loop = asyncio.get_running_loop()
    for is_ours in (False, True):
        future: asyncio.Future[None] = loop.create_future()
        task = asyncio.create_task(wait_for(future))
        await asyncio.sleep(0)
        (task if is_ours else future).cancel()
        await asyncio.wait([task])
    assert told == [False, True]


async def test_other_errors_should_be_no_cancellation() -> None:
    assert not is_cancelled(ValueError())


async def test_work_that_is_cancelled_from_within_should_not_end_without_a_word() -> None:
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.cancel()

    async def work() -> None:
        await future

    with pytest.raises(ExceptionGroup) as caught:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(uncancelled(work))
    assert caught.group_contains(InterruptedError)


@pytest.mark.parametrize("has_begun", [True, False])
async def test_work_that_we_cancel_should_end_cancelled(has_begun: bool) -> None:
    task = asyncio.create_task(uncancelled(asyncio.Event().wait))
    if has_begun:
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_work_that_ends_should_give_its_result() -> None:
    async def work() -> str:
        return "done"

    assert await uncancelled(work) == "done"
