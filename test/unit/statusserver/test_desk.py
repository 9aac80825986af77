import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from ktrainer.kube.identity import ObjectKey
from ktrainer.statusserver import desk as module
from ktrainer.statusserver.desk import FLUSH_SECONDS, INTERVAL_SECONDS, Desk
from ktrainer.statusserver.metrics import ProgressMetrics
from ktrainer.statusserver.refusal import Refusal, failed, finished
from ktrainer.statusserver.report import Report, Target
from support.virtualtime import VirtualClock

A = Target(ObjectKey("team-a", "a"), "ua")
B = Target(ObjectKey("team-a", "b"), "ub")


def report(percentage: int) -> Report:
    return Report({"progressPercentage": percentage, "lastUpdatedTime": "2026-01-02T03:04:05Z"})


class Writer:
    def __init__(self) -> None:
        self.written: list[tuple[float, str, int]] = []
        """When, whose and what."""
        self.faults: list[Exception] = []
        self.seconds = 0.0
        """How long a write takes."""
        self.writing: set[Target] = set()

    async def write(self, target: Target, report: Report, *, unless_newer: bool = False) -> None:
        assert target not in self.writing, "two writes at a time"
        self.writing.add(target)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.writing.discard(target)
        if self.faults:
            raise self.faults.pop(0)
        now = asyncio.get_running_loop().time()
        self.written.append((now, target.key.name, report.trainer_status["progressPercentage"]))


@asynccontextmanager
async def running(writer: Writer, clock: VirtualClock) -> AsyncIterator[Desk]:
    desk = Desk(writer, ProgressMetrics(CollectorRegistry()), clock)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(desk.run())
        yield desk
        desk.stop()


async def code_of(desk: Desk, target: Target, percentage: int) -> int:
    try:
        await desk.submit(target, report(percentage))
    except Refusal as refusal:
        return refusal.code
    return 200


async def test_the_last_of_many_should_be_written_when_its_time_comes(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with running(writer, virtual_clock) as desk:
        assert [await code_of(desk, A, number) for number in range(4)] == [200, 429, 429, 429]
        await asyncio.sleep(INTERVAL_SECONDS - 0.1)
        assert len(writer.written) == 1
        await asyncio.sleep(0.2)
        assert writer.written == [(0, "a", 0), (5, "a", 3)]
        assert await code_of(desk, A, 4) == 429, "what was kept has used up the next turn"
        await asyncio.sleep(INTERVAL_SECONDS)
        assert writer.written[2:] == [(10, "a", 4)]
        await asyncio.sleep(INTERVAL_SECONDS)
        assert await code_of(desk, A, 5) == 200


async def test_one_trainjob_should_not_wait_for_another(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with running(writer, virtual_clock) as desk:
        assert [await code_of(desk, target, 1) for target in (A, B, A, B)] == [200, 200, 429, 429]
        await asyncio.sleep(INTERVAL_SECONDS + 0.1)
    assert writer.written == [(0, "a", 1), (0, "b", 1), (5, "a", 1), (5, "b", 1)]


async def test_who_comes_too_early_should_be_told_when_to_come_again(virtual_clock: VirtualClock) -> None:
    async with running(Writer(), virtual_clock) as desk:
        await desk.submit(A, report(1))
        await asyncio.sleep(1.5)
        with pytest.raises(Refusal) as caught:
            await desk.submit(A, report(2))
        assert caught.value.retry_after == 4


async def test_two_at_a_time_should_be_one_write_and_one_for_later(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    writer.seconds = 1
    async with running(writer, virtual_clock) as desk:
        assert list(await asyncio.gather(code_of(desk, A, 1), code_of(desk, A, 2))) == [200, 429]
        await asyncio.sleep(10)
    assert writer.written == [(1, "a", 1), (7, "a", 2)]


async def test_a_write_that_fails_should_not_use_up_the_turn(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    writer.faults = [OSError("reset"), failed("no")]
    async with running(writer, virtual_clock) as desk:
        with pytest.raises(OSError, match="reset"):
            await desk.submit(A, report(1))
        assert [await code_of(desk, A, 2), await code_of(desk, A, 3)] == [500, 200]
    assert writer.written == [(0, "a", 3)]


async def test_what_is_kept_should_be_tried_again_after_a_fault(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with running(writer, virtual_clock) as desk:
        assert [await code_of(desk, A, 1), await code_of(desk, A, 2)] == [200, 429]
        writer.faults = [OSError("reset by the t0ken"), failed("no")]
        with capture_logs() as logs:
            await asyncio.sleep(16)
    assert writer.written == [(0, "a", 1), (15, "a", 2)]
    assert [each["error"] for each in logs] == ["OSError", "InternalError"]
    assert "t0ken" not in str(logs)


async def test_what_came_meanwhile_should_beat_what_failed(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with running(writer, virtual_clock) as desk:
        assert [await code_of(desk, A, 1), await code_of(desk, A, 2)] == [200, 429]
        writer.faults, writer.seconds = [OSError("reset")], 1
        await asyncio.sleep(5.5)
        assert await code_of(desk, A, 3) == 429
        await asyncio.sleep(10)
    assert writer.written == [(0, "a", 1), (12, "a", 3)]


async def test_what_is_kept_should_be_dropped_when_the_trainjob_has_finished(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with running(writer, virtual_clock) as desk:
        assert [await code_of(desk, A, 1), await code_of(desk, A, 2)] == [200, 429]
        writer.faults = [finished(A.key)]
        await asyncio.sleep(30)
    assert writer.written == [(0, "a", 1)]


async def test_what_is_kept_should_be_written_on_a_stop(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with running(writer, virtual_clock) as desk:
        for target in (A, B):
            assert [await code_of(desk, target, 1), await code_of(desk, target, 2)] == [200, 429]
    assert writer.written == [(0, "a", 1), (0, "b", 1), (0, "a", 2), (0, "b", 2)]
    assert virtual_clock.monotonic() == 0


async def test_what_is_being_written_should_be_awaited_on_a_stop(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    writer.seconds = 1
    async with running(writer, virtual_clock) as desk:
        await desk.submit(A, report(1))
        assert await code_of(desk, A, 2) == 429
        await asyncio.sleep(5.5)
        assert await code_of(desk, A, 3) == 429
    assert writer.written == [(1, "a", 1), (7, "a", 2), (8, "a", 3)]


async def test_a_server_that_hangs_should_not_keep_us_from_stopping(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with running(writer, virtual_clock) as desk:
        assert [await code_of(desk, A, 1), await code_of(desk, A, 2)] == [200, 429]
        writer.seconds = 3600
        with capture_logs() as logs:
            desk.stop()
            await asyncio.sleep(FLUSH_SECONDS + 1)
    assert [(each["log_level"], each["reports"]) for each in logs] == [("warning", 1)]
    assert virtual_clock.monotonic() == FLUSH_SECONDS + 1


async def test_who_hangs_up_should_have_his_report_written_all_the_same(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    writer.seconds = 1
    async with running(writer, virtual_clock) as desk:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await desk.submit(A, report(1))
        await asyncio.sleep(10)
    assert writer.written == [(6.5, "a", 1)]


@asynccontextmanager
async def overtaking(writer: Writer, clock: VirtualClock) -> AsyncIterator[Desk]:
    """A desk that has kept report 2, whose turn has come, and will look after it only in a while."""
    desk = Desk(writer, ProgressMetrics(CollectorRegistry()), clock)
    assert [await code_of(desk, A, 1), await code_of(desk, A, 2)] == [200, 429]
    await asyncio.sleep(INTERVAL_SECONDS)
    yield desk
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(desk.run())
        await asyncio.sleep(30)
        desk.stop()


async def test_what_is_kept_should_not_be_written_over_a_newer_report(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with overtaking(writer, virtual_clock) as desk:
        assert await code_of(desk, A, 3) == 200
    assert writer.written == [(0, "a", 1), (5, "a", 3)]


async def test_who_hangs_up_should_have_the_newer_report_written(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with overtaking(writer, virtual_clock) as desk:
        writer.seconds = 1
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await desk.submit(A, report(3))
    assert [number for _, _, number in writer.written] == [1, 3]


async def test_what_is_kept_should_be_written_when_the_newer_report_is_not(virtual_clock: VirtualClock) -> None:
    writer = Writer()
    async with overtaking(writer, virtual_clock) as desk:
        writer.faults = [failed("no")]
        assert await code_of(desk, A, 3) == 500
    assert [number for _, _, number in writer.written] == [1, 2]


async def test_there_should_be_a_limit_to_what_is_kept(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 1)
    writer = Writer()
    async with running(writer, virtual_clock) as desk:
        for target in (A, B):
            assert [await code_of(desk, target, 1), await code_of(desk, target, 2)] == [200, 429]
        assert await code_of(desk, A, 3) == 429
    assert writer.written == [(0, "a", 1), (0, "b", 1), (0, "a", 3)]


async def test_a_trainjob_that_falls_silent_should_be_forgotten(virtual_clock: VirtualClock) -> None:
    async with running(Writer(), virtual_clock) as desk:
        await desk.submit(A, report(1))
        await asyncio.sleep(INTERVAL_SECONDS + 0.1)
        assert not desk._turns
