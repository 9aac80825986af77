"""Long-lived tasks under supervision: none of them can end unnoticed.

A program that has lost one of its loops is worse off than one that restarts: it looks alive and is deaf. So a task
that returns or raises although nobody stopped it ends the whole scope with `TaskDied`. Tasks live in groups, and the
body of the scope decides in which order the groups stop:

    async with Supervisor() as supervisor:
        caches, workers = supervisor.group("caches"), supervisor.group("workers")
        ...
        try:
            await stop.wait()
        finally:
            supervisor.begin_shutdown()
            await workers.stop(grace_seconds=20)
            await caches.stop()
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Self

import structlog

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from types import TracebackType

_log = structlog.get_logger(__name__)


class TaskDied(Exception):
    """A supervised task ended although nobody stopped it, or failed while it was being stopped."""

    def __init__(self, name: str, cause: BaseException | None) -> None:
        super().__init__(f"task {name} died: " + ("it returned" if cause is None else repr(cause)))
        self.name = name
        """The task, as group/name."""
        self.cause = cause
        """What it raised; None when it just returned."""


class Supervisor:
    """One scope of supervised tasks; when it has been left, none of them is running any more.

    The first task that dies before `begin_shutdown` cancels the body of the scope, as in a TaskGroup, but leaves the
    other tasks alone until the body stops their groups or ends. Groups that the body did not stop are cancelled one
    after the other, the latest first. Then `TaskDied` is raised, unless we are being cancelled from outside or the body
    failed by itself.
    """

    def __init__(self) -> None:
        self._groups: list[Group] = []
        self._deaths: list[TaskDied] = []
        self._body: asyncio.Task[Any] | None = None
        """The task that is inside the scope; None before and after."""
        self._cancelling_before = 0
        """How many cancellations the body was already subject to when it entered."""
        self._is_body_cancelled = False
        """Whether we have cancelled the body, which happens at most once and is taken back at the end."""
        self._is_shutting_down = False

    async def __aenter__(self) -> Self:
        self._body = asyncio.current_task()
        self._cancelling_before = self._body.cancelling() if self._body else 0
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        body, self._body = self._body, None
        was_cancelled = await self._stop_all() or isinstance(error, asyncio.CancelledError)
        if body and self._is_body_cancelled:
            body.uncancel()
        if body and was_cancelled and body.cancelling() > self._cancelling_before:
            raise error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError()
        if self._deaths and (error is None or self._is_body_cancelled):
            raise self._deaths[0] from self._deaths[0].cause

    def group(self, name: str) -> Group:
        """Return a new, empty group; its name prefixes the names of its tasks."""
        group = Group(name, self._died)
        self._groups.append(group)
        return group

    def begin_shutdown(self) -> None:
        """From now on a death does not interrupt the body, which is busy stopping; it is still raised at the end."""
        self._is_shutting_down = True

    @property
    def dead(self) -> tuple[str, ...]:
        """The names of the tasks that died, for a health check."""
        return tuple(death.name for death in self._deaths)

    def _died(self, death: TaskDied) -> None:
        _log.critical("supervised task died", task=death.name, exc_info=death.cause)
        self._deaths.append(death)
        if self._body is not None and not self._is_shutting_down and not self._is_body_cancelled:
            self._is_body_cancelled = True
            self._body.cancel()

    async def _stop_all(self) -> bool:
        """Cancel what is left and wait for it to end, come what may; return whether we were cancelled meanwhile."""
        was_cancelled = False
        groups = list(self._groups)
        while groups:
            try:
                await groups[-1].stop()
                groups.pop()
            except asyncio.CancelledError:
                was_cancelled = True
        return was_cancelled


class Group:
    """Tasks that stop together."""

    def __init__(self, name: str, died: Callable[[TaskDied], None]) -> None:
        self._name = name
        self._died = died
        self._tasks: dict[asyncio.Task[None], Callable[[], None] | None] = {}
        """The running tasks, each with the way to ask it to stop, if it has one."""
        self._is_stopping = False
        """Once true no task is started any more, and those that run may end."""

    def start(self, name: str, coroutine: Coroutine[Any, Any, None], *, stop: Callable[[], None] | None = None) -> None:
        """Run `coroutine` as a task that is meant to run until the group stops.

        `stop` asks it to end by itself within the grace period; without it the task is cancelled at once. Raises
        RuntimeError when the group has been stopped.
        """
        if self._is_stopping:
            coroutine.close()
            raise RuntimeError(f"group {self._name} has been stopped")
        task = asyncio.create_task(coroutine, name=f"{self._name}/{name}")
        self._tasks[task] = stop
        task.add_done_callback(self._ended)

    async def stop(self, *, grace_seconds: float = 0.0) -> tuple[str, ...]:
        """Stop all tasks and wait until they have ended; return the names of those that overran the grace period.

        Tasks that can be asked to stop are asked, the others are cancelled; after the grace period all are cancelled.
        A task that resists cancellation is waited for without limit. If this call itself is cancelled, tasks may be
        left: call it again.
        """
        self._is_stopping = True
        late: tuple[str, ...] = ()
        if self._tasks and grace_seconds > 0:
            for task, ask in list(self._tasks.items()):
                self._ask(task, ask)
            await asyncio.wait(list(self._tasks), timeout=grace_seconds)
            late = tuple(sorted(task.get_name() for task in self._tasks if not task.done()))
        if self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(list(self._tasks))
        return late

    def _ask(self, task: asyncio.Task[None], stop: Callable[[], None] | None) -> None:
        if stop is None:
            task.cancel()
            return
        try:
            stop()
        except Exception as error:  # a broken stop must not keep the other tasks running
            self._died(TaskDied(task.get_name(), error))
            task.cancel()

    def _ended(self, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        cause = asyncio.CancelledError() if task.cancelled() else task.exception()
        was_asked_to = self._is_stopping and (cause is None or isinstance(cause, asyncio.CancelledError))
        if not was_asked_to:
            self._died(TaskDied(task.get_name(), cause))
