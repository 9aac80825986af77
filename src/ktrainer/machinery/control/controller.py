"""The controller: workers that take keys from a queue and give them to a reconciler, and what becomes of the keys.

A reconciler gets a key and nothing else: it looks at the present state, so that no event can be missed or come twice.
It reports by returning or raising; only here is that logged, counted and turned into a further turn. No two turns of
one key overlap, because the queue hands out a key once at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog
from structlog.contextvars import bound_contextvars

from ktrainer.aio.cancellation import is_cancelled
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.control.outcome import Ending, Outcome, failure_of, outcome_of
from ktrainer.machinery.control.reconcile import Result
from ktrainer.machinery.queue.workqueue import Item, ShutDown, WorkQueue

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.control.metrics import ControllerMetrics

_log = structlog.get_logger(__name__)

STALE_SECONDS = 0.2
"""When a key is looked at again whose last write the cache did not show; usually the write's own event is faster."""

STALE_CAP_SECONDS = 5.0
"""As long as the cache stays behind, that time doubles up to this: many keys that wait must not keep a core busy."""

Reconcile = Callable[[ObjectKey], Awaitable[Result]]
"""Makes the world as it should be for one key; an object that is gone is a success."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What distinguishes one controller from another."""

    name: str
    """Unique within the process; in logs and metrics."""

    workers: int = 1
    """How many keys are reconciled at a time."""

    timeout_seconds: float = 60.0
    """A turn that takes longer is cancelled and counts as failed. Departs: upstream waits for ever."""


class Controller:
    """Runs one reconciler."""

    def __init__(
        self,
        settings: ControllerSettings,
        reconcile: Reconcile,
        queue: WorkQueue[ObjectKey],
        *,
        metrics: ControllerMetrics,
        clock: Clock,
    ) -> None:
        if settings.workers < 1:
            raise ValueError(f"controller {settings.name} would never do anything with {settings.workers} workers")
        self._settings = settings
        self._reconcile = reconcile
        self._queue = queue
        self._clock = clock
        self._metrics = metrics.record(settings.name, settings.workers)
        self._stale_seconds: dict[ObjectKey, float] = {}
        """When a key is looked at again if its next turn is stale, too; none of a key whose last turn was not."""
        self._has_run = False

    @property
    def name(self) -> str:
        """The name of the controller."""
        return self._settings.name

    async def run(self) -> None:
        """Work until `stop`; raises RuntimeError when it has run before.

        Cancelling it cancels the turns that are under way, which is as safe as a crash and no safer.
        """
        if self._has_run:
            raise RuntimeError(f"controller {self.name} has run before")
        self._has_run = True
        _log.info("controller starts", controller=self.name, workers=self._settings.workers)
        async with asyncio.TaskGroup() as workers:
            for number in range(self._settings.workers):
                workers.create_task(self._work(), name=f"{self.name}/{number}")
        _log.info("controller has stopped", controller=self.name)

    def stop(self) -> None:
        """Let the turns that are under way end, and `run` with them; what is queued is dropped."""
        self._queue.shut_down()

    async def _work(self) -> None:
        while True:
            try:
                item = await self._queue.get()
            except ShutDown:
                return
            self._metrics.active_workers.inc()
            try:
                await self._take_turn(item)
            finally:
                self._metrics.active_workers.dec()
                self._queue.done(item.key)
            # Neither the queue nor a cheap turn gives way, and a full queue of cheap turns would hold up the loop.
            await asyncio.sleep(0)

    async def _take_turn(self, item: Item[ObjectKey]) -> None:
        with bound_contextvars(
            controller=self.name, namespace=item.key.namespace, name=item.key.name, reconcile_id=str(uuid4())
        ):
            started_at = self._clock.monotonic()
            outcome = await self._try(item.key)
            seconds = self._clock.monotonic() - started_at
            self._count(outcome, seconds)
            _report(outcome, seconds)
        self._requeue(item, outcome)

    async def _try(self, key: ObjectKey) -> Outcome:
        """Reconcile, and tell what came of it; raises nothing but cancellation."""
        limit = asyncio.timeout(self._settings.timeout_seconds)
        try:
            async with limit:
                result = await self._reconcile(key)
            return outcome_of(result)
        except (Exception, asyncio.CancelledError) as error:  # one key's misfortune is not the others'
            if is_cancelled(error):
                raise
            return failure_of(error, timed_out=limit.expired())

    def _requeue(self, item: Item[ObjectKey], outcome: Outcome) -> None:
        """Decide about the next turn of the key. The only place that does."""
        key, queue = item.key, self._queue
        priority = item.priority if outcome.priority is None else outcome.priority
        stale_seconds = self._stale_seconds.pop(key, STALE_SECONDS)
        match outcome.ending:
            case Ending.SUCCESS | Ending.TERMINAL:
                queue.forget(key)
            case Ending.REQUEUE_AFTER:
                queue.forget(key)
                queue.add_after(key, outcome.requeue_after or 0.0, priority=priority)
            case Ending.STALE:
                queue.add_after(key, stale_seconds, priority=priority)
                self._stale_seconds[key] = min(2 * stale_seconds, STALE_CAP_SECONDS)
            case Ending.ERROR | Ending.TIMEOUT | Ending.PANIC:
                queue.add_rate_limited(key, priority=priority, at_least_seconds=outcome.not_before)
                if outcome.requeue_after is not None:
                    # The queue keeps the earlier of two times. Departs: upstream drops the deadline.
                    queue.add_after(key, outcome.requeue_after, priority=priority)

    def _count(self, outcome: Outcome, seconds: float) -> None:
        metrics, ending = self._metrics, outcome.ending
        metrics.seconds.observe(seconds)
        if ending.is_error:
            metrics.errors.inc()
            metrics.results["error"].inc()
        else:
            # That the cache was stale is counted by who noticed.
            metrics.results["requeue_after" if ending is Ending.STALE else ending.value].inc()
        if ending is Ending.TERMINAL:
            metrics.terminal_errors.inc()
        elif ending is Ending.TIMEOUT:
            metrics.timeouts.inc()
        elif ending is Ending.PANIC:
            metrics.panics.inc()


def _report(outcome: Outcome, seconds: float) -> None:
    facts: dict[str, object] = {"outcome": outcome.ending.value, "seconds": round(seconds, 6)}
    if outcome.requeue_after is not None:
        facts["requeue_after"] = outcome.requeue_after
    if outcome.ending is Ending.STALE:
        _log.debug("reconciled too early", reason=_describe(outcome.error), **facts)
    elif not outcome.ending.is_error:
        _log.info("reconciled", **facts)
    elif outcome.ending is Ending.PANIC:
        _log.error("reconcile failed unexpectedly", exc_info=outcome.error, **facts)
    else:
        _log.error("reconcile failed", error=_describe(outcome.error), **facts)


def _describe(error: BaseException | None) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_describe(each) for each in error.exceptions)
    return f"{type(error).__name__}: {error}"
