"""Telling apart the two kinds of CancelledError: that somebody cancelled us, and that something we waited for was."""

from __future__ import annotations

import asyncio


def is_cancelled(error: BaseException) -> bool:
    """Whether the error says that the running task was cancelled, so that it must pass.

    A future that others cancelled raises the same error in whoever waits for it. To take that for our own end would
    make loops stop without a word.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0
