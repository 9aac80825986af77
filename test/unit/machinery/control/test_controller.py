import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random

import pytest
import structlog
from prometheus_client import CollectorRegistry
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs

from ktrainer.kube.errors import ServiceUnavailable, TooManyRequests
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.control.controller import STALE_CAP_SECONDS, STALE_SECONDS, Controller, ControllerSettings
from ktrainer.machinery.control.metrics import ControllerMetrics
from ktrainer.machinery.control.reconcile import Result, RetryableError, Stale, TerminalError
from ktrainer.machinery.queue.metrics import QueueMetrics
from ktrainer.machinery.queue.ratelimiter import ExponentialLimiter
from ktrainer.machinery.queue.workqueue import WorkQueue
from support.virtualtime import VirtualClock, settle

KEY = ObjectKey("default", "job")
OTHER = ObjectKey("default", "other")

Step = Result | Exception | Callable[[], Awaitable[Result]]


class Bench:
    """A controller whose reconciler follows a script: one step per turn, then success."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.registry = CollectorRegistry()
        self.limiter = ExponentialLimiter[ObjectKey](Random(1), base_seconds=1.0)
        self.queue = WorkQueue[ObjectKey](
            "test", limiter=self.limiter, clock=clock, metrics=QueueMetrics(self.registry, clock)
        )
        self.metrics = ControllerMetrics(self.registry)
        self.script: list[Step] = []
        self.turns: list[tuple[float, str]] = []
        self._entered: set[ObjectKey] = set()

    def controller(self, workers: int = 1, timeout_seconds: float = 60.0) -> Controller:
        settings = ControllerSettings("test", workers=workers, timeout_seconds=timeout_seconds)
        return Controller(settings, self.reconcile, self.queue, metrics=self.metrics, clock=self.clock)

    async def reconcile(self, key: ObjectKey) -> Result:
        if key in self._entered:
            raise AssertionError(f"{key} is reconciled twice at once")
        self._entered.add(key)
        try:
            self.turns.append((self.clock.monotonic(), key.name))
            step = self.script.pop(0) if self.script else Result()
            if isinstance(step, Result):
                return step
            if isinstance(step, Exception):
                raise step
            return await step()
        finally:
            self._entered.discard(key)

    def times(self) -> list[float]:
        return [at for at, _ in self.turns]

    def count(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"controller": "test"} | labels)


@pytest.fixture
def bench(virtual_clock: VirtualClock) -> Bench:
    return Bench(virtual_clock)


@contextlib.asynccontextmanager
async def running(controller: Controller) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(controller.run())
    try:
        yield task
    finally:
        controller.stop()
        await asyncio.wait([task])


def sleeping(seconds: float) -> Callable[[], Awaitable[Result]]:
    async def step() -> Result:
        await asyncio.sleep(seconds)
        return Result()

    return step


async def test_a_key_should_be_reconciled_once(bench: Bench) -> None:
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(600)
    assert bench.turns == [(0, "job")]
    assert bench.count("controller_runtime_reconcile_total", result="success") == 1
    assert bench.count("controller_runtime_reconcile_time_seconds_count") == 1


async def test_success_should_forget_former_failures(bench: Bench) -> None:
    bench.script = [RetryableError("not yet")]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await settle()
        assert bench.queue.num_requeues(KEY) == 1
        await asyncio.sleep(5)
        assert bench.queue.num_requeues(KEY) == 0


async def test_failures_should_be_retried_ever_later(bench: Bench) -> None:
    bench.script = [ServiceUnavailable(503, "", "down")] * 4
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(60)
    waits = [later - earlier for earlier, later in itertools.pairwise(bench.times())]
    assert waits == [pytest.approx(seconds, rel=0.1) for seconds in (1, 2, 4, 8)]
    assert bench.count("controller_runtime_reconcile_total", result="error") == 4
    assert bench.count("controller_runtime_reconcile_errors_total") == 4
    assert bench.count("controller_runtime_reconcile_panics_total") == 0


async def test_a_failure_with_a_deadline_should_be_retried_at_the_deadline_at_the_latest(bench: Bench) -> None:
    failures = [RetryableError("down", requeue_after=3.0) for _ in range(4)]
    bench.script = [*failures]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(60)
    waits = [later - earlier for earlier, later in itertools.pairwise(bench.times())]
    assert waits == [pytest.approx(1, rel=0.1), pytest.approx(2, rel=0.1), pytest.approx(3), pytest.approx(3)]


async def test_a_terminal_failure_should_not_be_retried_nor_remembered(bench: Bench) -> None:
    bench.script = [RetryableError("x"), TerminalError("never")]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(600)
    assert len(bench.turns) == 2
    assert bench.queue.num_requeues(KEY) == 0
    assert bench.count("controller_runtime_terminal_reconcile_errors_total") == 1
    assert bench.count("controller_runtime_reconcile_errors_total") == 2


async def test_a_wish_for_another_turn_should_be_granted_without_backoff(bench: Bench) -> None:
    bench.script = [RetryableError("x"), Result(requeue_after=30), Result(requeue_after=30)]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(5)
        assert bench.queue.num_requeues(KEY) == 0
        await asyncio.sleep(100)
    waits = [later - earlier for earlier, later in itertools.pairwise(bench.times())]
    assert waits == [pytest.approx(1, rel=0.1), pytest.approx(30), pytest.approx(30)]
    assert bench.count("controller_runtime_reconcile_total", result="requeue_after") == 2


async def test_a_wait_that_the_server_asks_for_should_be_kept(bench: Bench) -> None:
    bench.script = [TooManyRequests(429, "TooManyRequests", "slow down", retry_after=wish) for wish in (120, 1, 3600)]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(1000)
    waits = [later - earlier for earlier, later in itertools.pairwise(bench.times())]
    # The second failure's own delay is the longer one; nobody may ask for more than five minutes.
    assert waits == [120, pytest.approx(2, rel=0.1), 300]


async def test_a_deadline_should_come_first_whatever_the_server_asks_for(bench: Bench) -> None:
    async def apply() -> Result:
        try:
            raise TooManyRequests(429, "TooManyRequests", "slow down", retry_after=120)
        except TooManyRequests as error:
            raise RetryableError("could not apply", requeue_after=30) from error

    bench.script = [apply]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(1000)
    assert bench.times() == [0, 30]


async def test_a_stale_cache_should_be_looked_at_again_shortly_and_not_count_as_failure(bench: Bench) -> None:
    bench.script = [RetryableError("x"), Stale("behind"), Stale("behind")]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(1.2)
        assert bench.queue.num_requeues(KEY) == 1
        await asyncio.sleep(100)
    waits = [later - earlier for earlier, later in itertools.pairwise(bench.times())]
    assert waits[1:] == [pytest.approx(STALE_SECONDS), pytest.approx(2 * STALE_SECONDS)]
    assert bench.count("controller_runtime_reconcile_total", result="requeue_after") == 2
    assert bench.count("controller_runtime_reconcile_errors_total") == 1
    assert bench.count("controller_runtime_reconcile_total", result="success") == 1


async def test_a_cache_that_stays_stale_should_be_looked_at_ever_later(bench: Bench) -> None:
    bench.script = [Stale("behind")] * 9
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(60)
    waits = [later - earlier for earlier, later in itertools.pairwise(bench.times())]
    assert waits == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, *[STALE_CAP_SECONDS] * 4])


@pytest.mark.parametrize("other", [Result(), Result(requeue_after=1), RetryableError("x"), TerminalError("x")])
async def test_any_other_end_should_make_a_stale_cache_urgent_again(bench: Bench, other: Step) -> None:
    bench.script = [*[Stale("behind")] * 5, other, Stale("behind again")]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(60)
        bench.queue.add(KEY)
        await asyncio.sleep(60)
    again, after = bench.times()[6:8]
    assert after - again == pytest.approx(STALE_SECONDS)


async def test_a_stale_key_should_not_slow_down_another(bench: Bench) -> None:
    bench.script = [Stale("behind")] * 6
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(6.3)
        bench.turns.clear()
        bench.script = [Stale("behind")]
        bench.queue.add(OTHER)
        await asyncio.sleep(1)
    assert [name for _, name in bench.turns] == ["other", "other"]


async def test_stale_turns_should_be_told_to_those_who_look_for_faults_only(bench: Bench) -> None:
    bench.script = [Stale("the cache is behind")]
    with capture_logs() as logs:
        async with running(bench.controller()):
            bench.queue.add(KEY)
            await asyncio.sleep(10)
    turns = [(entry["log_level"], entry["outcome"], entry.get("reason")) for entry in logs if "outcome" in entry]
    assert turns == [("debug", "stale", "Stale: the cache is behind"), ("info", "success", None)]


@pytest.mark.parametrize("error", [KeyError("bug"), RecursionError(), MemoryError()])
async def test_a_bug_should_cost_its_key_a_backoff_and_nobody_else_anything(bench: Bench, error: Exception) -> None:
    bench.script = [error]
    with capture_logs() as logs:
        async with running(bench.controller()):
            bench.queue.add(KEY)
            bench.queue.add(OTHER)
            await asyncio.sleep(10)
    assert [name for _, name in bench.turns] == ["job", "other", "job"]
    assert bench.count("controller_runtime_reconcile_panics_total") == 1
    assert bench.count("controller_runtime_reconcile_errors_total") == 1
    (report,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert report["exc_info"] is error
    assert report["outcome"] == "panic"


async def test_a_turn_that_takes_too_long_should_be_cancelled_and_retried(bench: Bench) -> None:
    bench.script = [sleeping(3600)]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(100)
    assert bench.times() == [0, pytest.approx(61, abs=0.2)]
    assert bench.count("controller_runtime_reconcile_timeouts_total") == 1
    assert bench.count("controller_runtime_reconcile_panics_total") == 0


async def test_a_timeout_of_the_reconcilers_own_should_not_count_as_ours(bench: Bench) -> None:
    bench.script = [TimeoutError("of some library")]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(100)
    assert bench.count("controller_runtime_reconcile_timeouts_total") == 0
    assert bench.count("controller_runtime_reconcile_panics_total") == 1


async def test_a_cancellation_that_is_not_meant_for_the_worker_should_not_end_it(bench: Bench) -> None:
    async def wait_for_something_cancelled() -> Result:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        future.cancel()
        return await future

    bench.script = [wait_for_something_cancelled]
    async with running(bench.controller()):
        bench.queue.add(KEY)
        await asyncio.sleep(10)
    assert len(bench.turns) == 2
    assert bench.count("controller_runtime_reconcile_panics_total") == 1


async def test_turns_of_one_key_should_never_overlap_and_changes_never_be_missed(bench: Bench) -> None:
    bench.script = [sleeping(5), sleeping(5)]
    async with running(bench.controller(workers=4)):
        bench.queue.add(KEY)
        await asyncio.sleep(1)
        for _ in range(10):
            bench.queue.add(KEY)
        await asyncio.sleep(60)
    assert bench.times() == [0, 5]
    assert bench.count("controller_runtime_reconcile_errors_total") == 0


async def test_workers_should_reconcile_different_keys_at_a_time(bench: Bench) -> None:
    keys = [ObjectKey("default", str(number)) for number in range(5)]
    bench.script = [sleeping(10) for _ in keys]
    async with running(bench.controller(workers=3)):
        for key in keys:
            bench.queue.add(key)
        await asyncio.sleep(1)
        assert bench.count("controller_runtime_active_workers") == 3
        await asyncio.sleep(60)
        assert bench.count("controller_runtime_active_workers") == 0
    assert bench.times() == [0, 0, 0, 10, 10]
    assert bench.count("controller_runtime_max_concurrent_reconciles") == 3


@pytest.mark.parametrize("priority, expected", [(None, ["urgent", "job", "other"]), (7, ["job", "urgent", "other"])])
async def test_a_retry_should_keep_its_priority_unless_the_result_says_otherwise(
    bench: Bench, priority: int | None, expected: list[str]
) -> None:
    bench.script = [Result(requeue_after=1, priority=priority)]
    async with running(bench.controller()):
        bench.queue.add(KEY, priority=4)
        await settle()
        bench.turns.clear()
        bench.script = [sleeping(5)]
        bench.queue.add(ObjectKey("default", "blocker"))
        await asyncio.sleep(2)
        bench.queue.add(OTHER, priority=3)
        bench.queue.add(ObjectKey("default", "urgent"), priority=5)
        await asyncio.sleep(60)
    assert [name for _, name in bench.turns[1:]] == expected


@pytest.mark.parametrize("error", [RetryableError("x"), Stale("behind")])
async def test_an_error_should_keep_the_priority(bench: Bench, error: Exception) -> None:
    bench.script = [error]
    async with running(bench.controller()):
        bench.queue.add(KEY, priority=4)
        await settle()
        bench.turns.clear()
        bench.script = [sleeping(5)]
        bench.queue.add(ObjectKey("default", "blocker"), priority=9)
        await asyncio.sleep(2)
        bench.queue.add(OTHER, priority=3)
        await asyncio.sleep(60)
    assert [name for _, name in bench.turns[1:]] == ["job", "other"]


async def test_stop_should_let_turns_end_and_drop_the_queue(bench: Bench) -> None:
    bench.script = [sleeping(5)]
    controller = bench.controller()
    async with running(controller) as task:
        bench.queue.add(KEY)
        bench.queue.add(OTHER)
        await asyncio.sleep(1)
        controller.stop()
        await task
        assert bench.clock.monotonic() == 5
    assert bench.turns == [(0, "job")]


async def test_cancelling_should_cancel_the_turns_and_leave_no_key_behind(bench: Bench) -> None:
    bench.script = [sleeping(5)]
    async with running(bench.controller()) as task:
        bench.queue.add(KEY)
        await asyncio.sleep(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bench.clock.monotonic() == 1
        assert not bench.queue.running_since()
    assert bench.count("controller_runtime_reconcile_errors_total") == 0
    assert bench.count("controller_runtime_active_workers") == 0


async def test_a_controller_should_run_only_once(bench: Bench) -> None:
    controller = bench.controller()
    async with running(controller):
        await settle()
        with pytest.raises(RuntimeError, match="has run before"):
            await controller.run()


async def test_cheap_turns_should_not_hold_up_the_loop(bench: Bench) -> None:
    passes = 0

    async def count_passes() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0)

    for number in range(100):
        bench.queue.add(ObjectKey("default", str(number)))
    other = asyncio.create_task(count_passes())
    async with running(bench.controller()):
        while len(bench.turns) < 100:  # noqa: ASYNC110 - passes of the loop are what is counted
            await asyncio.sleep(0)
    other.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await other
    assert passes >= 100


async def test_every_turn_should_be_one_line_and_name_its_key(bench: Bench) -> None:
    async def speak() -> Result:
        structlog.get_logger().info("from a plugin")
        await asyncio.sleep(2)
        return Result(requeue_after=5)

    bench.script = [speak, RetryableError("not yet")]
    with capture_logs(processors=[merge_contextvars]) as logs:
        async with running(bench.controller()):
            bench.queue.add(KEY)
            await asyncio.sleep(7.5)
    spoken, first, second = (entry for entry in logs if "reconcile_id" in entry)
    assert spoken["reconcile_id"] == first["reconcile_id"] != second["reconcile_id"]
    for entry in (spoken, first, second):
        assert (entry["controller"], entry["namespace"], entry["name"]) == ("test", "default", "job")
    assert (first["event"], first["log_level"], first["outcome"]) == ("reconciled", "info", "requeue_after")
    assert (first["seconds"], first["requeue_after"]) == (2, 5)
    assert (second["log_level"], second["outcome"]) == ("error", "error")
    assert second["error"] == "RetryableError: not yet"


async def test_several_failures_should_all_be_told(bench: Bench) -> None:
    bench.script = [ExceptionGroup("", [RetryableError("one"), ServiceUnavailable(503, "", "two")])]
    with capture_logs() as logs:
        async with running(bench.controller()):
            bench.queue.add(KEY)
            await settle()
    (report,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert report["error"] == "RetryableError: one; ServiceUnavailable: 503: two"


async def test_a_controller_without_workers_should_be_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match="0 workers"):
        bench.controller(workers=0)


async def test_controllers_should_not_share_a_name(bench: Bench) -> None:
    bench.controller()
    with pytest.raises(ValueError, match="already a controller named test"):
        bench.controller()


async def test_all_series_should_exist_from_the_start(bench: Bench) -> None:
    bench.controller(workers=5)
    for result in ("success", "error", "requeue_after", "requeue"):
        assert bench.count("controller_runtime_reconcile_total", result=result) == 0
    for name in (
        "controller_runtime_reconcile_errors_total",
        "controller_runtime_terminal_reconcile_errors_total",
        "controller_runtime_reconcile_panics_total",
        "controller_runtime_reconcile_timeouts_total",
        "controller_runtime_reconcile_time_seconds_count",
        "controller_runtime_active_workers",
    ):
        assert bench.count(name) == 0
    assert bench.count("controller_runtime_max_concurrent_reconciles") == 5
