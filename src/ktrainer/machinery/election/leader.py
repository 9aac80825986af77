"""Leader election with a Lease: at most one process does the work that must not be done twice.

The decisions are in `election`, the requests in `candidate`, the data in `lease`; here is the waiting. A process leads
at most once: when it loses the lease it ends, since nobody can tell how far its work has come. Any failure but
cancellation is just an attempt that failed, be it a page of HTML where a Lease should have been.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn
from uuid import uuid4

import structlog

from ktrainer.client.errors import FenceClosed
from ktrainer.machinery.election.candidate import Candidate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.election.candidate import LeaseClient
    from ktrainer.machinery.election.election import Election, LeaseSettings
    from ktrainer.machinery.election.metrics import LeaderMetrics

_log = structlog.get_logger(__name__)


class LeaseLost(Exception):
    """We led and do not any more: the process must end, without finishing anything first."""


class NotLeading(FenceClosed):
    """A write was refused because only the leader may write, and we are not surely the leader."""


def build_identity(hostname: str) -> str:
    """Return an identity that no other process and no other start of this one has."""
    return f"{hostname}_{uuid4()}"


class LeaseElector:
    """Takes part in one election on behalf of this process."""

    def __init__(
        self,
        client: LeaseClient,
        election: Election,
        *,
        clock: Clock,
        metrics: LeaderMetrics,
        notify: Callable[[str], None],
    ) -> None:
        """`notify` hears, in words for an Event, when we become leader and when we stop leading; it must not raise."""
        self._candidate = Candidate(client, election, clock)
        self._election = election
        self._settings = election.settings
        self._clock = clock
        self._metrics = metrics
        self._notify = notify
        self._tried_at = 0.0
        """When the last attempt began."""
        self.answered_at: float | None = None
        """When the API server last told us about the lease, in monotonic seconds; None if it never has."""
        self.last_error: str | None = None
        """Why the last attempt failed; None when it did not."""

    @property
    def settings(self) -> LeaseSettings:
        """The settings of the election."""
        return self._settings

    @property
    def is_leading(self) -> bool:
        """Whether we surely lead at this moment."""
        return self._election.leads_for(self._clock.monotonic()) > 0

    @property
    def renewal_age_seconds(self) -> float | None:
        """How long ago the last successful renewal was sent; None while we do not believe to lead."""
        renewed_at = self._election.renewed_at
        return None if renewed_at is None else self._clock.monotonic() - renewed_at

    def fence(self) -> None:
        """Raise NotLeading unless we surely lead at this moment; to be called right before each write."""
        if not self.is_leading:
            age = self.renewal_age_seconds
            raise NotLeading("this process does not lead" if age is None else f"the lease was renewed {age:.1f} s ago")

    async def run(self, on_started: Callable[[], None]) -> NoReturn:
        """Wait until we lead, call `on_started`, and go on leading until cancelled; raises LeaseLost when that fails.

        Cancel it when the work that only the leader may do has stopped: the lease is then given back.
        """
        try:
            await self._acquire()
            self._report("became leader")
            on_started()
            await self._keep()
        except LeaseLost:
            self._stop_leading()
            raise
        except asyncio.CancelledError:
            self._stop_leading()
            await self._candidate.give_back()
            raise

    async def _acquire(self) -> None:
        _log.info("waiting to become leader", lease=str(self._settings.key), identity=self._settings.identity)
        while True:
            self._tried_at = self._clock.monotonic()
            await self._attempt()
            if self.is_leading:
                return
            await asyncio.sleep(self._election.acquire_delay(self._clock.monotonic()))

    async def _keep(self) -> NoReturn:
        """Renew again and again; raises LeaseLost when the deadline passes or somebody else holds the lease."""
        while True:
            await self._sleep_until_renewal()
            leads_for = self._election.leads_for(self._clock.monotonic())
            if leads_for == 0.0:
                raise LeaseLost(f"the lease was not renewed in time: {self.last_error or 'this process stood still'}")
            self._tried_at = self._clock.monotonic()
            try:
                async with asyncio.timeout(leads_for):
                    await self._attempt()
            except TimeoutError:
                self.last_error = self.last_error or "no answer before the renew deadline"
            if not self._election.is_ours:
                raise LeaseLost(f"the lease is {self._candidate.state}")

    async def _sleep_until_renewal(self) -> None:
        now = self._clock.monotonic()
        due_at = max(self._tried_at, self._election.renewed_at or 0.0) + self._settings.times.retry_seconds
        await asyncio.sleep(max(0.0, min(due_at - now, self._election.leads_for(now))))

    async def _attempt(self) -> None:
        """Try once to take or renew the lease; what comes of it shows in `_election`."""
        try:
            await self._claim_or_look()
        except Exception as error:  # whatever it is, the next attempt may succeed
            self.last_error = f"{type(error).__name__}: {error}"
            self._metrics.is_reachable.set(0)
            _log.warning("attempt to take or renew the lease failed", error=self.last_error)
        else:
            self.last_error = None
            self.answered_at = self._clock.monotonic()
            self._metrics.is_reachable.set(1)

    async def _claim_or_look(self) -> None:
        if self.is_leading:
            try:
                await self._candidate.claim()
            except Exception as error:  # the server's present state tells what to do
                self._metrics.slow_paths.inc()
                _log.info("renewing the lease takes a second look", error=f"{type(error).__name__}: {error}")
            else:
                return
        await self._candidate.look()
        if self._election.renewed_at is not None and not self._election.is_ours:
            return
        if self._election.held_for(self._clock.monotonic()) == 0.0:
            await self._candidate.claim()

    def _stop_leading(self) -> None:
        if self._election.renewed_at is not None:
            self._election.resign()
            self._report("stopped leading")

    def _report(self, what: str) -> None:
        is_leading = self._election.renewed_at is not None
        self._metrics.is_leading.set(int(is_leading))
        _log.info(what, lease=str(self._settings.key), identity=self._settings.identity)
        self._notify(f"{self._settings.identity} {what}")
