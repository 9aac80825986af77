import asyncio

from ktrainer.machinery.cancellation import is_cancelled


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
