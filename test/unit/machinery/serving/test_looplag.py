import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.aio.clock import SystemClock
from ktrainer.aio.lag import BEAT_SECONDS, LagMonitor
from ktrainer.machinery.serving.health import Unhealthy
from ktrainer.machinery.serving.looplag import HANG_SECONDS, LoopLag
from support.virtualtime import ManualClock, settle


class Recorder:
    """A `Terminator` that only notes what it was asked to do."""

    def __init__(self) -> None:
        self.exits = 0

    def exit_now(self) -> None:
        self.exits += 1

    def exit_after(self, seconds: float) -> None:
        raise AssertionError("not asked for")


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = CollectorRegistry()
        self.terminator = Recorder()
        self.lag = LoopLag(LagMonitor(self.clock), self.registry, self.terminator)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.lag.run())
        await settle()
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def stand_still(self, seconds: float) -> None:
        self.clock.advance(BEAT_SECONDS + seconds)


@pytest.fixture
def bench() -> Bench:
    return Bench()


async def test_a_loop_that_keeps_up_should_be_healthy(bench: Bench) -> None:
    async with bench.running():
        for _ in range(100):
            bench.clock.advance(BEAT_SECONDS)
            await asyncio.sleep(BEAT_SECONDS)
        bench.lag.check()


@pytest.mark.parametrize("seconds, is_healthy", [(3, True), (12, False)])
async def test_a_loop_that_stood_still_should_be_unhealthy_once(bench: Bench, seconds: float, is_healthy: bool) -> None:
    async with bench.running():
        bench.stand_still(seconds)
        await asyncio.sleep(5)
        if not is_healthy:
            with pytest.raises(Unhealthy, match=r"stood still for 12\.0 s"):
                bench.lag.check()
        bench.lag.check()


async def test_a_probe_that_comes_before_the_next_heartbeat_should_see_the_lag(bench: Bench) -> None:
    async with bench.running():
        bench.stand_still(12)
        with pytest.raises(Unhealthy):
            bench.lag.check()


async def test_the_longest_lag_of_each_second_should_be_counted(bench: Bench) -> None:
    def count(bound: str) -> float | None:
        return bench.registry.get_sample_value("ktrainer_event_loop_lag_seconds_bucket", {"le": bound})

    async with bench.running():
        await asyncio.sleep(2.1)
        assert count("0.005") == 2
        bench.stand_still(2)
        bench.lag.check()
        await asyncio.sleep(1)
        assert (count("1.0"), count("3.0"), count("+Inf")) == (2, 3, 3)


async def test_a_loop_that_hangs_for_good_should_end_the_process(bench: Bench) -> None:
    async with bench.running():
        bench.stand_still(100)
        for _ in range(HANG_SECONDS - 1):
            bench.lag.poll()
        assert bench.terminator.exits == 0
        bench.lag.poll()
        assert bench.terminator.exits == 1


async def test_a_process_that_was_suspended_should_live_on(bench: Bench) -> None:
    async with bench.running():
        for _ in range(3):
            bench.stand_still(36_000)
            for _ in range(HANG_SECONDS - 1):
                bench.lag.poll()
            await asyncio.sleep(1)
            bench.lag.poll()
        assert bench.terminator.exits == 0


@pytest.mark.realtime
async def test_a_thread_should_do_the_polling_and_end_with_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    polled = threading.Event()
    lag = LoopLag(LagMonitor(SystemClock()), CollectorRegistry(), Recorder())
    monkeypatch.setattr(lag, "poll", polled.set)
    task = asyncio.create_task(lag.run())
    await asyncio.sleep(0)
    (guard,) = (thread for thread in threading.enumerate() if thread.name == "event-loop-guard")
    assert await asyncio.to_thread(polled.wait, 10)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.to_thread(guard.join, 10)
    assert not guard.is_alive()
