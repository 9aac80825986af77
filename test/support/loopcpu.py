"""How much CPU time each callback of an event loop uses: a callback that computes for long starves all others."""

from __future__ import annotations

import asyncio
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
    """Callbacks above the limit."""


@contextmanager
def measured_callbacks(limit_seconds: float = 0.020) -> Iterator[CallbackTimes]:
    """Measure every callback of the event loops that run in this thread meanwhile."""
    times = CallbackTimes()
    original = asyncio.Handle._run

    def run(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        try:
            original(handle)
        finally:
            used = time.thread_time() - began
            if used > times.longest_seconds:
                times.longest_seconds, times.longest = used, repr(handle)
            if used > limit_seconds:
                times.slow.append((used, repr(handle)))

    # The only place that every callback passes.
    setattr(asyncio.Handle, "_run", run)  # noqa: B010 - a method is no attribute to mypy
    try:
        yield times
    finally:
        setattr(asyncio.Handle, "_run", original)  # noqa: B010 - as above
