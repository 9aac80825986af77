import asyncio
from contextlib import suppress

from structlog.testing import capture_logs

from ktrainer.client.throttle import Throttle
from ktrainer.kube.identity import GroupKind
from support.virtualtime import ManualClock, VirtualClock

JOBS = GroupKind("batch", "Job")
PODS = GroupKind("", "Pod")


class TickingClock(ManualClock):
    """Shows a later time whenever it is looked at, as real ones do."""

    def monotonic(self) -> float:
        self.advance(0.000_001)
        return super().monotonic()


async def test_each_kind_should_have_a_budget_of_its_own(virtual_clock: VirtualClock) -> None:
    throttle = Throttle(10, 2, virtual_clock)
    assert [await throttle.wait(JOBS) for _ in range(3)] == [0, 0, 0.1]
    assert virtual_clock.monotonic() == 0.1
    assert await throttle.wait(PODS) == 0


async def test_waiters_should_leave_in_turn(virtual_clock: VirtualClock) -> None:
    throttle = Throttle(2, 1, virtual_clock)
    left: list[tuple[int, float]] = []

    async def request(number: int) -> None:
        await throttle.wait(JOBS)
        left.append((number, virtual_clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(request(number))
    assert left == [(0, 0), (1, 0.5), (2, 1.0), (3, 1.5)]


async def test_a_waiter_that_gives_up_should_leave_its_place_to_the_others(virtual_clock: VirtualClock) -> None:
    throttle = Throttle(1, 1, virtual_clock)
    left: list[tuple[int, float]] = []

    async def request(number: int) -> None:
        await throttle.wait(JOBS)
        left.append((number, virtual_clock.monotonic()))

    tasks = [asyncio.create_task(request(number)) for number in range(8)]
    await asyncio.sleep(0.5)
    for task in tasks[1:6]:
        task.cancel()
    tasks.append(asyncio.create_task(request(8)))
    await asyncio.wait(tasks)
    assert left == [(0, 0), (6, 1), (7, 2), (8, 3)]


async def test_waiters_that_all_give_up_should_leave_nothing_behind(virtual_clock: VirtualClock) -> None:
    throttle = Throttle(1, 2, virtual_clock)
    tasks = [asyncio.create_task(throttle.wait(JOBS)) for _ in range(100)]
    await asyncio.sleep(0.5)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert await throttle.wait(JOBS) == 0.5
    await asyncio.sleep(2)
    assert [await throttle.wait(JOBS) for _ in range(3)] == [0, 0, 1]


async def test_a_waiter_that_gives_up_should_be_logged_with_what_it_has_waited(virtual_clock: VirtualClock) -> None:
    throttle = Throttle(0.01, 1, virtual_clock)
    await throttle.wait(JOBS)
    with capture_logs() as logs, suppress(TimeoutError):
        async with asyncio.timeout(60):
            await throttle.wait(JOBS)
    assert [(each["log_level"], each["seconds"]) for each in logs] == [("info", 60)]


async def test_a_request_that_need_not_wait_should_not_count_as_one_that_waited() -> None:
    clock = TickingClock()
    throttle = Throttle(10, 2, clock)
    assert [await throttle.wait(JOBS) for _ in range(2)] == [0, 0]


async def test_a_rate_of_zero_or_less_should_be_no_limit(virtual_clock: VirtualClock) -> None:
    for qps in (0.0, -1.0):
        throttle = Throttle(qps, 0, virtual_clock)
        for _ in range(1000):
            assert await throttle.wait(JOBS) == 0
    assert virtual_clock.monotonic() == 0


async def test_only_waits_that_matter_should_be_logged(virtual_clock: VirtualClock) -> None:
    with capture_logs() as logs:
        throttle = Throttle(20, 1, virtual_clock)
        for _ in range(2):
            await throttle.wait(JOBS)
    assert logs == []
    with capture_logs() as logs:
        throttle = Throttle(0.8, 1, virtual_clock)
        await throttle.wait(JOBS)
        await asyncio.sleep(1.1)
        await throttle.wait(JOBS)
        await throttle.wait(JOBS)
    assert [(each["log_level"], each["kind"], each["seconds"]) for each in logs] == [
        ("debug", "Job.batch", 0.15),
        ("info", "Job.batch", 1.25),
    ]
