"""The manager: starts everything in the right order, keeps watch, and stops everything in the right order.

Start: stage after stage, each when the one before is ready; LEADER when the election is won.
Stop: webhooks begin to drain, while OTHERS and WARM_UP stop, then LEADER, then the election, which gives the lease
back as soon as nobody works under it. Then CACHES, SERVERS and BACKGROUND. A lost lease ends all of it at once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import structlog

from ktrainer.aio.supervisor import Supervisor, TaskDied
from ktrainer.machinery.election.leader import LeaseLost
from ktrainer.machinery.runnable import Runnable, Stage
from ktrainer.machinery.serving.health import Unhealthy

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.aio.signals import StopSignals, Terminator
    from ktrainer.aio.supervisor import Group

_log = structlog.get_logger(__name__)

GRACE_SECONDS = 30.0
"""How long an orderly stop may take in all."""

LEADER_SHARE = 2 / 3
"""The share of what is left of the grace period that leader-only work may use up; the rest gives the lease back."""

LOST_SECONDS = 1.0
"""How long after the loss of the lease the process may still be there."""

_FOR_EVER_SECONDS = 10 * 365 * 86_400.0


class Elector(Protocol):
    """What decides whether this process leads."""

    async def run(self, on_started: Callable[[], None]) -> None:
        """Call `on_started` when we lead, and go on until cancelled; raises LeaseLost when we do not lead any more."""
        ...


class GraceExceeded(Exception):
    """Something had to be cancelled, because the grace period was over."""


class Manager:
    """Runs all parts of a process."""

    def __init__(
        self,
        signals: StopSignals,
        *,
        elector: Elector | None,
        terminator: Terminator,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """Without elector this process always leads. A negative grace period is endless, and 0 means to cancel all."""
        self._signals = signals
        self._elector = elector
        self._terminator = terminator
        self._grace_seconds = grace_seconds if grace_seconds >= 0 else _FOR_EVER_SECONDS
        self._runnables: dict[Stage, list[Runnable]] = {stage: [] for stage in Stage}
        """What has yet to be started, by stage."""
        self._groups: dict[Stage, Group] = {}
        """The stages that have been started."""
        self._supervisor: Supervisor | None = None
        """Set once `run` has been called."""
        self._election: Group | None = None
        """The task of the elector, once there is one."""
        self._late: list[str] = []
        """What did not stop within the grace period."""
        self._is_lost = False
        """Whether we led and lost the lease."""
        self.elected = asyncio.Event()
        """Set when leader-only work may start, and never cleared."""
        self.is_stopping = False
        """Whether the stop has begun, so that readiness should fail."""

    def add(self, stage: Stage, runnable: Runnable) -> None:
        """Start something with its stage, or at once if that has started; raises RuntimeError after the stop."""
        if self.is_stopping:
            raise RuntimeError(f"{runnable.name} comes too late: the manager is stopping")
        group = self._groups.get(stage)
        if group is None:
            self._runnables[stage].append(runnable)
        else:
            group.start(runnable.name, runnable.run(), stop=runnable.stop)

    def check_tasks(self) -> None:
        """Healthz: raise Unhealthy when a supervised task has died."""
        dead = self._supervisor.dead if self._supervisor is not None else ()
        if dead:
            raise Unhealthy("died: " + ", ".join(dead))

    def check_stopping(self) -> None:
        """Readyz: raise Unhealthy when the stop has begun."""
        if self.is_stopping:
            raise Unhealthy("stopping")

    async def run(self) -> None:
        """Start, wait for the signal to stop, and stop; returns after an orderly stop and raises after any other.

        Raises LeaseLost, TaskDied when a runnable ended, what kept a stage from becoming ready, or GraceExceeded.
        """
        if self._supervisor is not None:
            raise RuntimeError("the manager has run before")
        self._supervisor = Supervisor()
        try:
            async with self._supervisor:
                try:
                    await self._start_and_wait(self._supervisor)
                finally:
                    await self._stop(self._supervisor)
        except TaskDied as death:
            if isinstance(death.cause, LeaseLost):
                raise death.cause from None
            raise

    async def _start_and_wait(self, supervisor: Supervisor) -> None:
        """Start stage after stage and return when a stop is asked for, however far that has got."""
        starting = asyncio.create_task(self._start(supervisor), name="start")
        stopping = asyncio.create_task(self._signals.stop.wait(), name="stop")
        try:
            await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                await stopping
        finally:
            starting.cancel()
            stopping.cancel()
            await asyncio.wait({starting, stopping})

    async def _start(self, supervisor: Supervisor) -> None:
        for stage in Stage:
            if stage is Stage.LEADER:
                await self._win_election(supervisor)
            if self._signals.stop.is_set():
                return  # winning the election or becoming ready may coincide with the signal to stop
            group = self._groups[stage] = supervisor.group(stage.name.lower())
            runnables, self._runnables[stage] = self._runnables[stage], []
            for runnable in runnables:
                group.start(runnable.name, runnable.run(), stop=runnable.stop)
            for runnable in runnables:
                if runnable.wait_ready is not None:
                    await runnable.wait_ready()
            if runnables:
                _log.info("stage is ready", stage=stage.name.lower(), runnables=[each.name for each in runnables])

    async def _win_election(self, supervisor: Supervisor) -> None:
        if self._elector is None:
            self.elected.set()
            return
        self._election = supervisor.group("election")
        self._election.start("elector", self._run_elector(self._elector))
        await self.elected.wait()

    async def _run_elector(self, elector: Elector) -> None:
        try:
            await elector.run(self.elected.set)
        except LeaseLost:
            self._is_lost = True
            # Another process may lead from now on. Whatever we do: not for long.
            self._signals.request_stop()
            self._terminator.exit_after(LOST_SECONDS)
            raise

    async def _stop(self, supervisor: Supervisor) -> None:
        supervisor.begin_shutdown()
        self.is_stopping = True
        self._signals.request_stop()
        if self._is_lost:
            return
        _log.info("stopping", grace_seconds=self._grace_seconds)
        began_at = asyncio.get_running_loop().time()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._stop_groups(began_at + self._grace_seconds, self._groups.get(Stage.WEBHOOKS)))
            tasks.create_task(self._stop_work(began_at))
        for stage in (Stage.CACHES, Stage.SERVERS, Stage.BACKGROUND):
            await self._stop_groups(began_at + self._grace_seconds, self._groups.get(stage))
        if self._late:
            raise GraceExceeded("cancelled after the grace period: " + ", ".join(self._late))
        _log.info("stopped")

    async def _stop_work(self, began_at: float) -> None:
        """Stop all that works on behalf of users, and then give the lease back."""
        deadline = began_at + self._grace_seconds
        await self._stop_groups(deadline, self._groups.get(Stage.OTHERS), self._groups.get(Stage.WARM_UP))
        now = asyncio.get_running_loop().time()
        leader_deadline = now + (deadline - now) * LEADER_SHARE
        await self._stop_groups(leader_deadline, self._groups.get(Stage.LEADER))
        await self._stop_groups(deadline, self._election)

    async def _stop_groups(self, deadline: float, *groups: Group | None) -> None:
        """Stop some groups at a time; what is still there at the deadline is cancelled and noted as late."""
        remaining = max(0.0, deadline - asyncio.get_running_loop().time())
        async with asyncio.TaskGroup() as tasks:
            stops = [tasks.create_task(group.stop(grace_seconds=remaining)) for group in groups if group is not None]
        for stop in stops:
            self._late += stop.result()
