import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable

import pytest
from structlog.testing import capture_logs

from ktrainer.aio.clock import SystemClock
from ktrainer.aio.lag import BEAT_SECONDS, WARN_SECONDS, LagMonitor
from support.virtualtime import ManualClock, VirtualClock, settle


@contextlib.asynccontextmanager
async def running(monitor: LagMonitor) -> AsyncIterator[None]:
    task = asyncio.create_task(monitor.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_loop_that_keeps_up_should_show_no_lag(virtual_clock: VirtualClock) -> None:
    monitor = LagMonitor(virtual_clock)
    async with running(monitor):
        await asyncio.sleep(10)
        assert monitor.lag_seconds() == 0
    assert monitor.take_max() == 0


async def test_an_overdue_heartbeat_should_be_seen_before_it_comes() -> None:
    clock = ManualClock()
    monitor = LagMonitor(clock)
    async with running(monitor):
        await settle()
        clock.advance(BEAT_SECONDS + 12)
        assert monitor.lag_seconds() == pytest.approx(12)


async def test_the_maximum_should_be_kept_until_it_is_read() -> None:
    clock = ManualClock()
    monitor = LagMonitor(clock)
    async with running(monitor):
        for late in (0.5, 3.0, 0.25):
            await settle()
            clock.advance(BEAT_SECONDS + late)
            await asyncio.sleep(BEAT_SECONDS)
        await settle()
        assert monitor.lag_seconds() == 0
        assert monitor.take_max() == pytest.approx(3)
        assert monitor.take_max() == 0
        clock.advance(BEAT_SECONDS + 2)
        assert monitor.take_max() == pytest.approx(2)


async def test_a_loop_that_is_not_measured_should_show_no_lag() -> None:
    clock = ManualClock()
    monitor = LagMonitor(clock)
    assert monitor.lag_seconds() == 0
    async with running(monitor):
        await settle()
    clock.advance(60)
    assert monitor.lag_seconds() == 0


@pytest.mark.realtime
async def test_a_blocked_loop_should_be_reported_once_with_its_stack() -> None:
    monitor = LagMonitor(SystemClock())
    with capture_logs() as logs:
        async with running(monitor):
            await asyncio.sleep(0)
            block_here(until=lambda: bool(logs))
            await asyncio.sleep(BEAT_SECONDS)
            assert monitor.take_max() >= WARN_SECONDS
    assert [entry["event"] for entry in logs] == ["event loop is blocked"]
    assert "block_here" in logs[0]["stack"]
    assert logs[0]["lag_seconds"] >= WARN_SECONDS


@pytest.mark.realtime
async def test_the_watching_thread_should_end_with_the_task() -> None:
    async with running(LagMonitor(SystemClock())):
        await asyncio.sleep(0)
        (watcher,) = (thread for thread in threading.enumerate() if thread.name == "event-loop-lag")
    await asyncio.to_thread(watcher.join, 5)
    assert not watcher.is_alive()


def block_here(until: Callable[[], bool]) -> None:
    for _ in range(1000):
        if until():
            return
        threading.Event().wait(0.01)
