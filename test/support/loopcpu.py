"""How much CPU time each callback of an event loop uses: a callback that computes for long starves all others."""

from __future__ import annotations

import asyncio
import gc
import resource
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class CallbackTimes:
    """What was measured: CPU seconds of the thread, so that waiting for a busy machine does not count."""

    longest_seconds: float = 0.0
    longest: str = ""
    """What the longest callback was."""
    slow: list[tuple[float, str]] = field(default_factory=list)
    """Callbacks above the limit, each longer than those before it."""


def _reads_of_program() -> int:
    """How often this thread had to wait for a page of memory to be read from the disk."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_majflt


def _task_of(handle: asyncio.Handle) -> asyncio.Task[object] | None:
    """The task that a callback is a step of."""
    owner = getattr(getattr(handle, "_callback", None), "__self__", None)
    return owner if isinstance(owner, asyncio.Task) else None


def _is_of_test(handle: asyncio.Handle) -> bool:
    """Whether a callback is a step of the test itself."""
    task = _task_of(handle)
    return task is not None and getattr(task.get_coro(), "__name__", "").startswith("test_")


@contextmanager
def measured_callbacks(limit_seconds: float = 0.020) -> Iterator[CallbackTimes]:
    """Measure every callback of the event loops that run in this thread meanwhile.

    Those of other threads are the proxy's and other helpers'. Collections of garbage do not count: nearly all that they
    look through is the test's own, such as audit logs. How long they take in a program is measured by hack/bench/kit.
    Nor does a callback in which a part of the program had to be read from the disk again: some machines take the memory
    of those who rest, and what bringing it back costs is not ours. And what a test does in its own steps, such as
    starting many threads, it does to itself: whatever is to be measured runs in tasks of its own.
    """
    times = CallbackTimes()
    original = asyncio.Handle._run
    loop_thread = threading.get_ident()
    collecting = [0.0, 0.0]
    """When the last collection in this thread began, and how long all of them have taken."""

    def collected(phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() == loop_thread:
            if phase == "start":
                collecting[0] = time.thread_time()
            else:
                collecting[1] += time.thread_time() - collecting[0]

    def run(handle: asyncio.Handle) -> None:
        if threading.get_ident() != loop_thread:
            original(handle)
            return
        reads, began, collecting[1] = _reads_of_program(), time.thread_time(), 0.0
        try:
            original(handle)
        finally:
            used = time.thread_time() - began - collecting[1]
            if used > times.longest_seconds and reads == _reads_of_program() and not _is_of_test(handle):
                times.longest_seconds, times.longest = used, repr(_task_of(handle) or handle)
                if used > limit_seconds:
                    times.slow.append((used, times.longest))

    # The only place that every callback passes.
    gc.callbacks.append(collected)
    setattr(asyncio.Handle, "_run", run)  # noqa: B010 - a method is no attribute to mypy
    try:
        yield times
    finally:
        gc.callbacks.remove(collected)
        setattr(asyncio.Handle, "_run", original)  # noqa: B010 - as above
