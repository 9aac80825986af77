"""Where reports are handed in: one write in five seconds for each TrainJob, and the last report is never lost.

A report that comes too early is kept in the place of the one that was kept before, and written when its time comes or
when we stop. A write that fails does not use up the turn.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from ktrainer.statusserver.refusal import Refusal, too_many

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.statusserver.metrics import ProgressMetrics
    from ktrainer.statusserver.report import Report, Target

_log = structlog.get_logger(__name__)

INTERVAL_SECONDS: Final = 5.0
"""The time between two writes for one TrainJob."""

FLUSH_SECONDS: Final = 10.0
"""How long writing what is kept may take once we are to stop."""

MAX_KEPT: Final = 4096
"""Reports that are kept, each at most some 40 KiB; who comes too early beyond that has to come again."""


class Writer(Protocol):
    """Writes reports."""

    async def write(self, target: Target, report: Report, *, unless_newer: bool = False) -> None:
        """Write one; raises Refusal where the TrainJob takes none, and anything else when it may work later."""
        ...


@dataclass(slots=True)
class _Turn:
    """The turn of one TrainJob."""

    due_at: float
    """When the next write may begin."""
    is_writing: bool = False
    kept: Report | None = None
    """The latest report that came too early; while one is written, what has come after that."""

    def restore(self, report: Report | None) -> None:
        """Keep a report that was not written, unless a newer one has come since."""
        self.kept = self.kept or report


class Desk:
    """Takes reports from `run` until `stop`. Turns change between awaits only, so two writes never overlap."""

    def __init__(self, writer: Writer, metrics: ProgressMetrics, clock: Clock) -> None:
        self._writer = writer
        self._metrics = metrics
        self._clock = clock
        self._turns: dict[Target, _Turn] = {}
        """The TrainJobs that have to wait, or that are being written."""
        self._changed = asyncio.Event()
        self._is_stopping = False

    async def submit(self, target: Target, report: Report) -> None:
        """Write a report, or keep it for later and raise Refusal 429; raises what the writer raises."""
        turn = self._turns.get(target)
        now = self._clock.monotonic()
        if turn is not None and (turn.is_writing or now < turn.due_at):
            self._keep(turn, report)
            raise too_many("a report was written just now; this one is kept for later", turn.due_at - now)
        turn = turn or _Turn(now)
        older, turn.kept = turn.kept, None
        try:
            await self._write(target, turn, report)
        except Exception:
            turn.restore(older)
            raise

    def stop(self) -> None:
        """Let `run` write what is kept and come to its end."""
        self._is_stopping = True
        for turn in self._turns.values():
            turn.due_at = self._clock.monotonic()
        self._changed.set()

    async def run(self) -> None:
        """Write what is kept, each when its time comes; when stopped, at once."""
        try:
            async with asyncio.timeout(None) as limit, asyncio.TaskGroup() as tasks:
                while not (self._is_stopping and self._is_done()):
                    if self._is_stopping and limit.when() is None:
                        limit.reschedule(asyncio.get_running_loop().time() + FLUSH_SECONDS)
                    for target in self._take_due():
                        tasks.create_task(self._flush(target), name=f"progress of {target.key}")
                    await self._wait()
        except TimeoutError:
            _log.warning("progress is lost: the API server did not take it in time", reports=self._kept_count())

    def _keep(self, turn: _Turn, report: Report) -> None:
        if turn.kept is None and self._kept_count() >= MAX_KEPT:
            raise too_many("too many reports are waiting", INTERVAL_SECONDS)
        turn.kept = report
        self._changed.set()

    def _is_done(self) -> bool:
        return not any(turn.kept is not None or turn.is_writing for turn in self._turns.values())

    def _kept_count(self) -> int:
        return sum(turn.kept is not None for turn in self._turns.values())

    def _take_due(self) -> list[Target]:
        """Forget the turns that are over, and return the TrainJobs whose kept report is due."""
        now = self._clock.monotonic()
        over = [target for target, turn in self._turns.items() if not turn.is_writing and turn.due_at <= now]
        due = [target for target in over if self._turns[target].kept is not None]
        for target in over:
            if self._turns[target].kept is None:
                del self._turns[target]
        for target in due:
            # At once, lest the next look finds it due again before its task has begun.
            self._turns[target].is_writing = True
        return due

    async def _wait(self) -> None:
        """Wait until something changes, or the next turn comes."""
        waiting = [turn.due_at for turn in self._turns.values() if not turn.is_writing]
        seconds = max(0.0, min(waiting) - self._clock.monotonic()) if waiting else None
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            pass
        self._changed.clear()

    async def _flush(self, target: Target) -> None:
        """Write what is kept for a TrainJob; what does not succeed is tried again at the next turn."""
        turn = self._turns[target]
        report, turn.kept = turn.kept, None
        if report is None:
            return
        try:
            await self._write(target, turn, report, unless_newer=True)
        except Refusal as refusal:
            if refusal.is_ours:
                self._retry(turn, report, refusal.reason)
            else:
                _log.debug("kept progress is dropped", trainjob=str(target.key), reason=refusal.reason)
        except Exception as error:  # the text of the error may quote the report
            self._retry(turn, report, type(error).__name__)

    def _retry(self, turn: _Turn, report: Report, problem: str) -> None:
        _log.warning("progress was not written, and will be tried again", error=problem)
        turn.restore(report)
        turn.due_at = self._clock.monotonic() + INTERVAL_SECONDS

    async def _write(self, target: Target, turn: _Turn, report: Report, *, unless_newer: bool = False) -> None:
        turn.is_writing = True
        self._turns[target] = turn
        try:
            await self._writer.write(target, report, unless_newer=unless_newer)
            self._metrics.written.inc()
            turn.due_at = self._clock.monotonic() + (0 if self._is_stopping else INTERVAL_SECONDS)
        except asyncio.CancelledError:
            # Nobody knows whether it was written, and who sent it has gone: later it surely will be.
            turn.restore(report)
            turn.due_at = self._clock.monotonic() + INTERVAL_SECONDS
            raise
        except Exception as error:
            if not isinstance(error, Refusal) or error.is_ours:
                self._metrics.failed.inc()
            raise
        finally:
            turn.is_writing = False
            self._changed.set()
