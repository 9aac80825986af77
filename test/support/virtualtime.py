"""Unit tests run in virtual time: an event loop whose clock jumps to the next timer as soon as nothing else can happen.

A pytest plugin, loaded by test/conftest.py. Every asynchronous test under test/unit runs on a `VirtualTimeLoop`;
`@pytest.mark.realtime` gives a test the ordinary loop instead. Each of them fails if it leaves a task behind.

Sockets within the process and `run_in_executor` work: the loop does not jump while such work is under way, so a timer
never beats it. What the loop cannot see is a thread of one's own or another process: tests of those are `realtime`.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, TypeVarTuple, Unpack

import pytest
from pytest_asyncio import is_async_test

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from concurrent.futures import Executor

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
"""What `VirtualClock.now` says when the loop's time is 0."""

IN_FLIGHT_SECONDS = 0.005
"""Real time that bytes on a loopback socket get to arrive before the clock jumps."""

STUCK_SECONDS = 10.0
"""Real time after which a loop that waits for sockets or threads, and for no timer, is called stuck."""

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class DeadlockError(Exception):
    """Every task waits for something that nobody will do."""


class _JumpingSelector(selectors.DefaultSelector):
    """Waits for file descriptors as usual, but moves the loop's clock instead of waiting for a timer."""

    loop: VirtualTimeLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or (timeout is not None and timeout <= 0):
            return ready
        if self.loop.has_executor_work():
            return super().select(STUCK_SECONDS) or self._give_up()
        if self.loop.has_sockets():
            ready = super().select(IN_FLIGHT_SECONDS)
        if ready or self.loop.wake_idle_waiters():
            return ready
        if timeout is None:
            # A thread that has just ended may have woken us before it did.
            return super().select(STUCK_SECONDS if self._could_be_woken() else 0) or self._give_up()
        self.loop.advance(timeout)
        return []

    def _give_up(self) -> NoReturn:
        raise DeadlockError(f"nothing can happen any more; waiting: {self.loop.describe_tasks()}")

    def _could_be_woken(self) -> bool:
        return self.loop.has_sockets() or threading.active_count() > 1


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop that starts at time 0 and never waits for a timer."""

    def __init__(self) -> None:
        self._now = 0.0
        self._executing = 0
        self._idle_waiters: list[asyncio.Future[None]] = []
        selector = _JumpingSelector()
        selector.loop = self
        super().__init__(selector)
        self._descriptors = selector.get_map()
        self._own_descriptors = len(self._descriptors)

    def time(self) -> float:
        """Return the virtual time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock; timers that become due run in the next pass."""
        self._now += seconds

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[_Ts]], _T], *args: *_Ts
    ) -> asyncio.Future[_T]:
        """Run `func` in a thread; virtual time stands still meanwhile."""
        future = super().run_in_executor(executor, func, *args)
        self._executing += 1
        future.add_done_callback(self._executed)
        return future

    def _executed(self, _: asyncio.Future[Any]) -> None:
        self._executing -= 1

    def has_executor_work(self) -> bool:
        """Return whether a thread is working for this loop."""
        return self._executing > 0

    def has_sockets(self) -> bool:
        """Return whether anything but the loop's own wake-up pipe is watched."""
        return len(self._descriptors) > self._own_descriptors

    def idle(self) -> asyncio.Future[None]:
        """Return a future that is done when the clock would jump next."""
        self._idle_waiters.append(self.create_future())
        return self._idle_waiters[-1]

    def wake_idle_waiters(self) -> bool:
        """Release those who wait for `idle`; return whether there were any."""
        waiters = [waiter for waiter in self._idle_waiters if not waiter.done()]
        self._idle_waiters.clear()
        for waiter in waiters:
            waiter.set_result(None)
        return bool(waiters)

    def describe_tasks(self) -> str:
        """Return every unfinished task with the line at which it waits."""
        return "; ".join(sorted(_describe(task) for task in asyncio.all_tasks(self))) or "no task"


class VirtualClock:
    """The `Clock` of a virtual-time loop (by default the running one); moves with `asyncio.sleep`."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or asyncio.get_running_loop()

    def monotonic(self) -> float:
        return self._loop.time()

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self._loop.time())


class ManualClock:
    """A `Clock` for tests without an event loop; moves when told to."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def advance(self, seconds: float) -> None:
        self.seconds += seconds

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.seconds)


async def settle() -> None:
    """Let all that can run without time passing run, until every other task is blocked."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualTimeLoop):
        raise TypeError("settle() needs the virtual-time loop: a real one does not know when it is idle")
    await loop.idle()


@pytest.fixture
async def virtual_clock() -> VirtualClock:
    """The clock of the test's loop."""
    if not isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
        pytest.fail("virtual_clock is for asynchronous tests under test/unit that are not marked realtime")
    return VirtualClock()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "realtime: run on an ordinary event loop, where time passes by itself")


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if item.get_closest_marker("realtime") or not item.path.is_relative_to(config.rootpath / "test" / "unit"):
        return {"real": asyncio.new_event_loop}
    return {"virtual": VirtualTimeLoop}


@pytest.fixture(autouse=True)
def _no_loose_ends(request: pytest.FixtureRequest) -> None:
    # Set up before all other fixtures of the test, hence torn down after them.
    if is_async_test(request.node):
        request.getfixturevalue("_loose_ends_check")


@pytest.fixture
async def _loose_ends_check() -> AsyncIterator[None]:
    loop = asyncio.get_running_loop()
    unhandled: list[str] = []

    def record(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        unhandled.append(f"{context['message']}: {context.get('exception')!r}")
        loop.default_exception_handler(context)

    loop.set_exception_handler(record)
    yield
    # Connections that were just closed and tasks that were just cancelled get the passes that they need to end.
    await (settle() if isinstance(loop, VirtualTimeLoop) else asyncio.sleep(IN_FLIGHT_SECONDS))
    leaked = asyncio.all_tasks() - {asyncio.current_task()}
    if leaked:
        pytest.fail("the test leaves tasks behind: " + "; ".join(_describe(task) for task in leaked))
    if unhandled:
        pytest.fail("nobody handled: " + "; ".join(unhandled))


def _describe(task: asyncio.Task[Any]) -> str:
    frames = task.get_stack(limit=1)
    where = f"{frames[0].f_code.co_filename}:{frames[0].f_lineno}" if frames else "not started"
    return f"{task.get_name()} at {where}"
