"""What the manager asks of its process: event loop, garbage collection, memory."""

from __future__ import annotations

import asyncio
import asyncio.sslproto
import ctypes
import gc
import importlib.util
from typing import TYPE_CHECKING, Any, Final

import prometheus_client

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

GC_THRESHOLDS: Final = (50_000, 20, 50)
"""The default looks through everything far too often for a process that keeps thousands of objects for long."""

TLS_BUFFER_BYTES: Final = 64 * 1024
"""For each connection of asyncio's own TLS, a quarter of what it takes by itself; it is no slower."""

TRIM_SECONDS: Final = 600.0
"""How often memory is given back that deleted objects have left; it takes a few milliseconds."""


def run_process(main: Coroutine[Any, Any, None]) -> None:
    """Run a program to its end, on the fastest event loop that is installed."""
    # A second series for each counter and histogram, of when it began, would double what a scrape costs.
    prometheus_client.disable_created_metrics()  # type: ignore[no-untyped-call]
    gc.set_threshold(*GC_THRESHOLDS)
    factory = None
    if importlib.util.find_spec("uvloop") is not None:
        import uvloop

        factory = uvloop.new_event_loop
    else:
        asyncio.sslproto.SSLProtocol.max_size = TLS_BUFFER_BYTES
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


async def keep_settled(trim: Callable[[], None] | None = None) -> None:
    """Take what has been loaded so far out of the sight of the garbage collector; give memory back until cancelled."""
    trim = trim or _trim
    gc.collect()
    gc.freeze()
    while True:
        await asyncio.sleep(TRIM_SECONDS)
        trim()


def _trim() -> None:
    """Return what is free to the system, where the C library can: it keeps it for ever by itself."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
