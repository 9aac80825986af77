import asyncio
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from support import virtualtime
from support.virtualtime import EPOCH, DeadlockError, ManualClock, VirtualClock, VirtualTimeLoop, settle


async def test_sleeping_should_move_the_clock_only(virtual_clock: VirtualClock) -> None:
    started = time.monotonic()
    await asyncio.sleep(86_400 * 3)
    assert virtual_clock.monotonic() == 86_400 * 3
    assert virtual_clock.now() == EPOCH + timedelta(days=3)
    assert time.monotonic() - started < 5


async def test_timers_should_fire_in_order(virtual_clock: VirtualClock) -> None:
    fired: list[tuple[str, float]] = []
    loop = asyncio.get_running_loop()

    def fire(name: str) -> None:
        fired.append((name, virtual_clock.monotonic()))

    for name, delay in (("late", 2.5), ("early", 0.1), ("middle", 1.0)):
        loop.call_later(delay, fire, name)
    await asyncio.sleep(3)
    assert fired == [("early", 0.1), ("middle", 1.0), ("late", 2.5)]


async def test_a_timeout_should_not_beat_a_socket(virtual_clock: VirtualClock) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    async with asyncio.timeout(0.001):
        for _ in range(50):
            writer.write(b"line\n")
            assert await reader.readline() == b"line\n"
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(290):
            await reader.readline()
    assert virtual_clock.monotonic() == 290
    writer.close()
    await writer.wait_closed()
    server.close()
    await server.wait_closed()


async def test_a_timeout_should_not_beat_a_thread(virtual_clock: VirtualClock) -> None:
    async with asyncio.timeout(0.001):
        assert not await asyncio.to_thread(threading.Event().wait, 0.05)
    assert virtual_clock.monotonic() == 0


async def test_settle_should_run_all_that_needs_no_time(virtual_clock: VirtualClock) -> None:
    steps: list[int] = []

    async def walk() -> None:
        for step in range(100):
            steps.append(step)
            await asyncio.sleep(0)
        await asyncio.to_thread(steps.append, 100)
        await asyncio.sleep(1)
        steps.append(101)

    async with asyncio.TaskGroup() as group:
        group.create_task(walk())
        await settle()
        assert steps == list(range(101))
        assert virtual_clock.monotonic() == 0
    assert steps[-1] == 101


def test_a_deadlock_should_be_reported_with_the_waiting_task() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    started = time.monotonic()
    with (
        asyncio.Runner(loop_factory=VirtualTimeLoop) as runner,
        pytest.raises(DeadlockError, match=r"test_virtualtime\.py"),
    ):
        runner.run(hang())
    assert time.monotonic() - started < 5


@pytest.mark.realtime
async def test_realtime_should_opt_out() -> None:
    assert not isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    with pytest.raises(TypeError, match="virtual-time loop"):
        await settle()


def test_manual_clock_should_move_when_told() -> None:
    clock = ManualClock()
    clock.advance(90)
    assert (clock.monotonic(), clock.now()) == (90, EPOCH + timedelta(seconds=90))


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], pytest.RunResult]:
    """Runs one asynchronous test, of which the body is given, in a suite of its own that uses the plugin."""
    monkeypatch.setenv("PYTHONPATH", str(Path(virtualtime.__file__).parents[1]))
    pytester.makepyprojecttoml('[tool.pytest.ini_options]\nasyncio_mode = "auto"\n')
    unit = pytester.path / "test" / "unit"
    unit.mkdir(parents=True)

    def run(body: str) -> pytest.RunResult:
        (unit / "test_it.py").write_text(f"import asyncio\nasync def test_it():\n    {body}\n")
        return pytester.runpytest_subprocess("-p", "support.virtualtime", "test")

    return run


def test_a_leaked_task_should_fail_the_test(suite: Callable[[str], pytest.RunResult]) -> None:
    result = suite("asyncio.create_task(asyncio.sleep(5), name='forgotten')")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*leaves tasks behind: forgotten*"])


def test_an_exception_that_nobody_sees_should_fail_the_test(suite: Callable[[str], pytest.RunResult]) -> None:
    result = suite("asyncio.get_running_loop().call_soon(int, 'no number')")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*nobody handled: *no number*"])


def test_a_task_that_ends_by_itself_should_be_no_leak(suite: Callable[[str], pytest.RunResult]) -> None:
    suite("asyncio.create_task(asyncio.sleep(0))").assert_outcomes(passed=1)
