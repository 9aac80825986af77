"""Telling apart the two kinds of CancelledError: that somebody cancelled us, and that something we waited for was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")


def is_cancelled(error: BaseException) -> bool:
    """Whether the error says that the running task was cancelled, so that it must pass.

    A future that others cancelled raises the same error in whoever waits for it. To take that for our own end would
    make loops stop without a word.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def uncancelled(work: Callable[[], Awaitable[T]]) -> T:
    """Do `work`; raises InterruptedError where it ends cancelled although nobody has cancelled us.

    For the tasks of a TaskGroup, which takes such an end for one that was wanted, and goes on without the task.
    """
    try:
        return await work()
    except asyncio.CancelledError as error:
        if is_cancelled(error):
            raise
        raise InterruptedError("something that was waited for has been cancelled") from error
