import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.aio.signals import StopSignals
from ktrainer.aio.supervisor import TaskDied
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.election.election import Election, LeaseSettings
from ktrainer.machinery.election.leader import LeaseElector, LeaseLost
from ktrainer.machinery.election.metrics import LeaderMetrics
from ktrainer.machinery.manager import LOST_SECONDS, Elector, GraceExceeded, Manager
from ktrainer.machinery.runnable import Runnable, Stage
from ktrainer.machinery.serving.health import Unhealthy
from support.leaseapi import LeaseApi
from support.patience import Noting
from support.virtualtime import VirtualClock, settle


class Bench:
    """A manager whose runnables write down when they start and end."""

    def __init__(self, signals: StopSignals, terminator: Noting, elector: Elector | None, grace: float) -> None:
        self.signals = signals
        self.terminator = terminator
        self.manager = Manager(signals, elector=elector, terminator=terminator, grace_seconds=grace)
        self.diary: list[tuple[float, str]] = []

    def note(self, what: str) -> None:
        self.diary.append((round(asyncio.get_running_loop().time(), 3), what))

    def events(self) -> list[str]:
        return [what for _, what in self.diary]

    def add(
        self,
        stage: Stage,
        name: str,
        *,
        ready_in: float = 0.0,
        ends_in: float = 0.0,
        fails_in: float | None = None,
        stoppable: bool = False,
    ) -> None:
        """Add something that is ready in so many seconds and takes so many to end when asked.

        What is not stoppable takes a cancellation for the question; what is just ends then.
        """
        stop = asyncio.Event()

        async def run() -> None:
            self.note(f"+{name}")
            try:
                if fails_in is not None:
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.sleep(fails_in)
                    raise ValueError(f"{name} is broken")
                await stop.wait()
                await asyncio.sleep(ends_in)
            except asyncio.CancelledError:
                if not stoppable:
                    await asyncio.sleep(ends_in)
                raise
            finally:
                self.note(f"-{name}")

        async def wait_ready() -> None:
            await asyncio.sleep(ready_in)

        self.manager.add(stage, Runnable(name, run, wait_ready, stop.set if stoppable else None))

    def add_all(self) -> None:
        for stage in Stage:
            self.add(stage, stage.name.lower())

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.manager.run())
        try:
            yield task
        finally:
            self.signals.request_stop()
            await asyncio.wait([task])
            if not task.cancelled():
                task.exception()


Build = Callable[..., Bench]


@pytest.fixture
async def build() -> AsyncIterator[Build]:
    with contextlib.ExitStack() as stack:

        def make(elector: Elector | None = None, grace: float = 30.0) -> Bench:
            terminator = Noting()
            signals = stack.enter_context(StopSignals(grace, terminator))
            return Bench(signals, terminator, elector, grace)

        yield make


@pytest.fixture
def api(virtual_clock: VirtualClock) -> LeaseApi:
    return LeaseApi(virtual_clock)


def build_elector(api: LeaseApi, clock: VirtualClock) -> LeaseElector:
    return LeaseElector(
        api,
        Election(LeaseSettings(ObjectKey("system", "trainer"), "us"), Random(1)),
        clock=clock,
        metrics=LeaderMetrics(CollectorRegistry(), "trainer"),
        notify=lambda note: None,
    )


@pytest.fixture
def elector(api: LeaseApi, virtual_clock: VirtualClock) -> LeaseElector:
    return build_elector(api, virtual_clock)


async def passes(check: Callable[[], Awaitable[None] | None]) -> bool:
    try:
        check()
    except Unhealthy:
        return False
    return True


async def test_stages_should_start_in_order_each_when_the_one_before_is_ready(build: Build) -> None:
    bench = build()
    for seconds, stage in enumerate(reversed(Stage)):
        bench.add(stage, stage.name.lower(), ready_in=seconds)
    async with bench.running():
        await asyncio.sleep(60)
        assert bench.diary == [
            (0, "+background"),
            (6, "+servers"),
            (11, "+caches"),
            (15, "+webhooks"),
            (18, "+others"),
            (20, "+warm_up"),
            (21, "+leader"),
        ]


async def test_stages_should_stop_in_order(build: Build) -> None:
    bench = build()
    for stage in Stage:
        bench.add(stage, stage.name.lower(), ends_in=1)
    async with bench.running() as task:
        await settle()
        bench.diary.clear()
        bench.signals.request_stop()
        await task
    assert sorted(bench.diary[:3]) == [(1, "-others"), (1, "-warm_up"), (1, "-webhooks")]
    assert bench.diary[3:] == [
        (2, "-leader"),
        (3, "-caches"),
        (4, "-servers"),
        (5, "-background"),
    ]
    assert bench.terminator.asked == ["after 35"]


async def test_a_signal_should_end_the_manager_in_order(build: Build) -> None:
    bench = build()
    bench.add_all()
    async with bench.running() as task:
        await settle()
        os.kill(os.getpid(), signal.SIGTERM)
        await task
    assert len(bench.events()) == 2 * len(Stage)


async def test_the_lease_should_be_given_back_after_the_work_and_before_the_webhooks_have_drained(
    build: Build, api: LeaseApi, elector: LeaseElector, virtual_clock: VirtualClock
) -> None:
    bench = build(elector)
    bench.add(Stage.WEBHOOKS, "webhook", ends_in=12, stoppable=True)
    bench.add(Stage.CACHES, "cache")
    bench.add(Stage.LEADER, "worker", ends_in=5, stoppable=True)
    async with bench.running() as task:
        await settle()
        bench.signals.request_stop()
        await asyncio.sleep(4.9)
        assert api.spec["holderIdentity"] == "us"
        elector.fence()
        await asyncio.sleep(0.2)
        assert api.spec["holderIdentity"] == ""
        assert bench.events() == ["+cache", "+webhook", "+worker", "-worker"]
        await task
        assert bench.diary[-2:] == [(12, "-webhook"), (12, "-cache")]


async def test_leader_only_work_should_wait_for_the_election(
    build: Build, api: LeaseApi, elector: LeaseElector
) -> None:
    api.write(holderIdentity="other", leaseDurationSeconds=15)
    bench = build(elector)
    bench.add_all()
    async with bench.running():
        await asyncio.sleep(14)
        assert "+warm_up" in bench.events()
        assert "+leader" not in bench.events()
        assert not bench.manager.elected.is_set()
        await asyncio.sleep(2)
        assert bench.manager.elected.is_set()
        assert "+leader" in bench.events()


async def test_without_an_election_the_process_should_lead(build: Build) -> None:
    bench = build()
    async with bench.running():
        await settle()
        assert bench.manager.elected.is_set()


async def test_a_process_that_never_led_should_not_start_leader_only_work_when_it_stops(
    build: Build, api: LeaseApi, elector: LeaseElector
) -> None:
    api.write(holderIdentity="other", leaseDurationSeconds=15)
    bench = build(elector)
    bench.add_all()
    async with bench.running() as task:
        await asyncio.sleep(3)
        bench.signals.request_stop()
        await task
    assert "+leader" not in bench.events()
    assert api.spec["holderIdentity"] == "other"


async def test_winning_and_stopping_at_one_moment_should_not_start_leader_only_work(build: Build) -> None:
    class Obliging:
        async def run(self, on_started: Callable[[], None]) -> None:
            bench.signals.request_stop()
            await bench.signals.stop.wait()
            on_started()
            await asyncio.Event().wait()

    bench = build(Obliging())
    bench.add_all()
    async with bench.running() as task:
        await task
    assert "+leader" not in bench.events()


@pytest.mark.parametrize("holder", ["thief", ""])
async def test_a_lost_lease_should_end_everything_at_once(
    build: Build, api: LeaseApi, elector: LeaseElector, virtual_clock: VirtualClock, holder: str
) -> None:
    bench = build(elector)
    bench.add(Stage.WEBHOOKS, "webhook", ends_in=12, stoppable=True)
    bench.add(Stage.LEADER, "worker", ends_in=12, stoppable=True)
    bench.add(Stage.LEADER, "controller")
    async with bench.running() as task:
        await settle()
        api.write(holderIdentity=holder)
        with pytest.raises(LeaseLost):
            await asyncio.wait_for(asyncio.shield(task), 3600)
        assert sorted(bench.diary[-3:]) == [(2, "-controller"), (2, "-webhook"), (2, "-worker")]
    assert bench.terminator.asked == ["after 35", f"after {LOST_SECONDS:g}"]


async def test_a_lease_that_is_lost_while_stopping_should_shorten_the_stop(
    build: Build, api: LeaseApi, elector: LeaseElector
) -> None:
    bench = build(elector)
    bench.add(Stage.LEADER, "worker", ends_in=15, stoppable=True)
    async with bench.running() as task:
        await settle()
        bench.signals.request_stop()
        api.write(holderIdentity="thief")
        await asyncio.sleep(3)
        assert bench.terminator.asked == ["after 35", f"after {LOST_SECONDS:g}"]
        with pytest.raises(LeaseLost):
            await task


async def test_the_first_runnable_that_ends_should_stop_the_manager_in_order(build: Build) -> None:
    bench = build()
    bench.add_all()
    bench.add(Stage.OTHERS, "broken", fails_in=5)
    async with bench.running() as task:
        with pytest.raises(TaskDied, match=r"others/broken died: .*is broken"):
            await task
        assert bench.events()[-4:] == ["-leader", "-caches", "-servers", "-background"]
        assert bench.terminator.asked == ["after 35"]


async def test_a_failure_while_stopping_should_not_cut_the_stop_short(build: Build) -> None:
    bench = build()
    bench.add(Stage.OTHERS, "broken", fails_in=1)
    bench.add(Stage.WEBHOOKS, "broken, too", fails_in=2)
    bench.add(Stage.LEADER, "worker", ends_in=5, stoppable=True)
    async with bench.running() as task:
        with pytest.raises(TaskDied, match="others/broken"):
            await task
    assert (6, "-worker") in bench.diary


async def test_a_runnable_that_returns_should_stop_the_manager(build: Build) -> None:
    bench = build()

    async def return_early() -> None:
        await asyncio.sleep(1)

    bench.manager.add(Stage.LEADER, Runnable("early", return_early))
    async with bench.running() as task:
        with pytest.raises(TaskDied, match="leader/early died: it returned"):
            await task


async def test_a_stage_that_never_becomes_ready_should_end_the_manager(build: Build) -> None:
    bench = build()
    bench.add(Stage.SERVERS, "servers")

    async def wait_synced() -> None:
        await asyncio.sleep(120)
        raise TimeoutError("trainjobs have not synced: 403 Forbidden")

    async def run() -> None:
        await asyncio.Event().wait()

    bench.manager.add(Stage.CACHES, Runnable("cache", run, wait_synced))
    bench.add(Stage.WEBHOOKS, "webhooks")
    async with bench.running() as task:
        with pytest.raises(TimeoutError, match="trainjobs have not synced"):
            await task
    assert bench.diary == [(0, "+servers"), (120, "-servers")]


async def test_a_stage_whose_readiness_is_cancelled_from_within_should_not_look_like_an_orderly_stop(
    build: Build,
) -> None:
    bench = build()

    async def wait_ready() -> None:
        raise asyncio.CancelledError

    async def run() -> None:
        await asyncio.Event().wait()

    bench.manager.add(Stage.CACHES, Runnable("cache", run, wait_ready))
    async with bench.running() as task:
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("stage", [Stage.SERVERS, Stage.CACHES, Stage.WEBHOOKS])
async def test_a_stop_while_starting_should_stop_what_has_started(build: Build, stage: Stage) -> None:
    bench = build()
    for each in Stage:
        bench.add(each, each.name.lower(), ready_in=3600 if each is stage else 0)
    async with bench.running() as task:
        await asyncio.sleep(5)
        started = bench.events()
        bench.signals.request_stop()
        await task
    assert started[-1] == f"+{stage.name.lower()}"
    assert sorted(bench.events()[len(started) :]) == sorted(event.replace("+", "-") for event in started)


async def test_what_overruns_the_grace_period_should_be_cancelled_and_told(
    build: Build, virtual_clock: VirtualClock
) -> None:
    bench = build()
    bench.add(Stage.OTHERS, "slow", ends_in=100, stoppable=True)
    bench.add(Stage.SERVERS, "server")
    async with bench.running() as task:
        await settle()
        bench.signals.request_stop()
        with pytest.raises(GraceExceeded, match="others/slow"):
            await task
        assert virtual_clock.monotonic() == 30
    assert bench.events()[-1] == "-server"


async def test_slow_leader_only_work_should_leave_time_to_give_the_lease_back(
    build: Build, api: LeaseApi, elector: LeaseElector, virtual_clock: VirtualClock
) -> None:
    bench = build(elector)
    bench.add(Stage.LEADER, "slow", ends_in=100, stoppable=True)
    async with bench.running() as task:
        await settle()
        bench.signals.request_stop()
        with pytest.raises(GraceExceeded, match="leader/slow"):
            await task
        assert virtual_clock.monotonic() == 20
    assert api.spec["holderIdentity"] == ""


async def test_leader_only_work_should_have_its_share_of_what_others_leave(
    build: Build, elector: LeaseElector, virtual_clock: VirtualClock
) -> None:
    bench = build(elector)
    bench.add(Stage.OTHERS, "slow", ends_in=24, stoppable=True)
    bench.add(Stage.LEADER, "work", ends_in=3, stoppable=True)
    async with bench.running() as task:
        await settle()
        bench.signals.request_stop()
        await task
        assert virtual_clock.monotonic() == 27


async def test_no_grace_should_mean_no_waiting(build: Build, virtual_clock: VirtualClock) -> None:
    bench = build(grace=0.0)
    bench.add(Stage.LEADER, "worker", ends_in=100, stoppable=True)
    async with bench.running() as task:
        await settle()
        bench.signals.request_stop()
        await task
        assert virtual_clock.monotonic() == 0


async def test_a_negative_grace_should_mean_to_wait_for_ever(build: Build, virtual_clock: VirtualClock) -> None:
    bench = build(grace=-1.0)
    bench.add(Stage.LEADER, "worker", ends_in=10_000, stoppable=True)
    async with bench.running() as task:
        await settle()
        bench.signals.request_stop()
        await task
        assert virtual_clock.monotonic() == 10_000
    assert bench.terminator.asked == []


async def test_something_may_be_added_after_the_start_but_not_after_the_stop(build: Build) -> None:
    bench = build()
    async with bench.running() as task:
        await asyncio.sleep(1)
        bench.add(Stage.LEADER, "late")
        await settle()
        assert bench.diary == [(1, "+late")]
        bench.signals.request_stop()
        await task
        with pytest.raises(RuntimeError, match="comes too late"):
            bench.add(Stage.OTHERS, "too late")


async def test_something_added_before_its_stage_should_start_with_it(build: Build) -> None:
    bench = build()
    bench.add(Stage.CACHES, "cache", ready_in=10)
    async with bench.running():
        await asyncio.sleep(1)
        bench.add(Stage.LEADER, "controller")
        await asyncio.sleep(20)
    assert bench.diary[1] == (10, "+controller")


async def test_health_should_tell_of_dead_tasks_and_of_the_stop(build: Build) -> None:
    bench = build()
    bench.add(Stage.OTHERS, "broken", fails_in=5)
    bench.add(Stage.WEBHOOKS, "webhook", ends_in=10, stoppable=True)
    assert await passes(bench.manager.check_tasks)
    async with bench.running():
        await asyncio.sleep(4)
        assert await passes(bench.manager.check_tasks)
        assert await passes(bench.manager.check_stopping)
        await asyncio.sleep(2)
        with pytest.raises(Unhealthy, match="died: others/broken"):
            bench.manager.check_tasks()
        with pytest.raises(Unhealthy, match="stopping"):
            bench.manager.check_stopping()


async def test_a_manager_should_run_only_once(build: Build) -> None:
    bench = build()
    async with bench.running():
        await settle()
        with pytest.raises(RuntimeError, match="has run before"):
            await bench.manager.run()


async def test_cancelling_the_manager_should_stop_everything_in_order(build: Build) -> None:
    bench = build()
    bench.add_all()
    async with bench.running() as task:
        await settle()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert bench.events()[-3:] == ["-caches", "-servers", "-background"]
