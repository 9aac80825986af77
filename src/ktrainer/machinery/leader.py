"""Leader election with a Lease: at most one process does the work that must not be done twice.

The decisions are in `election`, the data in `lease`; here are requests and waiting. A process leads at most once:
when it loses the lease it ends, since nobody can tell how far its work has come. Any failure but cancellation is just
an attempt that failed, be it a page of HTML where a Lease should have been.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NoReturn, Protocol
from uuid import uuid4

import structlog

from ktrainer.kube.errors import Conflict, NotFound
from ktrainer.machinery.lease import LEASES, MalformedLease, build_claim, build_release, parse_lease

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ktrainer.aio.clock import Clock
    from ktrainer.kube.identity import ObjectKey, Resource
    from ktrainer.machinery.election import Election, LeaseSettings
    from ktrainer.machinery.leadermetrics import LeaderMetrics

_log = structlog.get_logger(__name__)


class LeaseLost(Exception):
    """We led and do not any more: the process must end, without finishing anything first."""


class NotLeading(Exception):
    """A write was refused because only the leader may write, and we are not surely the leader."""


class LeaseClient(Protocol):
    """The requests of an election. They need a connection of their own, without throttle, retries and fence."""

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        """Return the object; raises NotFound when there is none."""
        ...

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create the object and return it as stored."""
        ...

    async def update(self, resource: Resource, key: ObjectKey, body: bytes) -> bytes:
        """Replace the version of the object that the body names, and return it as stored."""
        ...


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
        self._client = client
        self._election = election
        self._settings = election.settings
        self._clock = clock
        self._metrics = metrics
        self._notify = notify
        self._may_hold = False
        """Whether a claim of ours may be in the Lease, for all we know."""
        self._tried_at = 0.0
        """When the last attempt began."""
        self._problems: tuple[str, ...] = ()
        """What was last reported as unintelligible in the Lease."""
        self.has_answer = False
        """Whether the API server has told us about the lease at least once."""
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
            if self._may_hold:
                await self._release()
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
                raise LeaseLost(f"the lease is {_describe(self._election)}")

    async def _sleep_until_renewal(self) -> None:
        now = self._clock.monotonic()
        due_at = max(self._tried_at, self._election.renewed_at or 0.0) + self._settings.retry_seconds
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
            self.has_answer = True
            self._metrics.is_reachable.set(1)

    async def _claim_or_look(self) -> None:
        if self.is_leading:
            try:
                await self._claim()
            except Exception as error:  # the server's present state tells what to do
                self._metrics.slow_paths.inc()
                _log.info("renewing the lease takes a second look", error=f"{type(error).__name__}: {error}")
            else:
                return
        await self._look()
        if self._election.renewed_at is not None and not self._election.is_ours:
            return
        if self._election.held_for(self._clock.monotonic()) == 0.0:
            await self._claim()

    async def _look(self) -> None:
        """Read the Lease."""
        former = _describe(self._election)
        try:
            lease = parse_lease(await self._limited(self._client.get(LEASES, self._settings.key)))
        except NotFound as error:
            # Something else than the API server may have said so, too, such as a proxy that knows no such path.
            if error.reason != "NotFound":
                raise
            self._election.observe_absence()
        else:
            self._election.observe(lease, self._clock.monotonic())
            if lease.problems and lease.problems != self._problems:
                _log.error("the lease holds what nobody should have written", problems=lease.problems)
            self._problems = lease.problems
        if not self._election.is_ours:
            self._may_hold = False
            if _describe(self._election) != former:
                _log.info("the lease is not ours", state=_describe(self._election))

    async def _claim(self) -> None:
        """Write ourselves into the version of the Lease that we know."""
        lease, key = self._election.lease, self._settings.key
        body = build_claim(lease, key, self._settings.identity, self._settings.lease_seconds, self._clock.now())
        self._may_hold = True
        sent_at = self._clock.monotonic()
        if lease is None:
            answer = await self._limited(self._client.create(LEASES, key.namespace, body))
        else:
            answer = await self._limited(self._client.update(LEASES, key, body))
        stored = parse_lease(answer)
        if stored.holder != self._settings.identity:
            raise MalformedLease(f"the server took our claim and answered that {stored.holder!r} holds the lease")
        self._election.won(stored, sent_at, self._clock.monotonic())

    async def _release(self) -> None:
        """Give the lease back, so that the next leader need not wait; not for longer than we could have held it."""
        try:
            async with asyncio.timeout(self._settings.renew_deadline_seconds):
                while True:
                    await self._look()
                    if not self._election.is_ours or self._election.lease is None:
                        return
                    body = build_release(self._election.lease, self._clock.now())
                    try:
                        await self._limited(self._client.update(LEASES, self._settings.key, body))
                    except Conflict:
                        continue
                    _log.info("gave the lease back")
                    return
        except Exception as error:  # the lease will expire by itself
            _log.warning("could not give the lease back", error=f"{type(error).__name__}: {error}")

    async def _limited(self, request: Awaitable[bytes]) -> bytes:
        async with asyncio.timeout(self._settings.request_seconds):
            return await request

    def _stop_leading(self) -> None:
        if self._election.renewed_at is not None:
            self._election.resign()
            self._report("stopped leading")

    def _report(self, what: str) -> None:
        is_leading = self._election.renewed_at is not None
        self._metrics.is_leading.set(int(is_leading))
        _log.info(what, lease=str(self._settings.key), identity=self._settings.identity)
        self._notify(f"{self._settings.identity} {what}")


def _describe(election: Election) -> str:
    if election.lease is None:
        return "absent"
    holder = election.lease.holder
    return "free" if holder == "" else f"held by {'somebody unintelligible' if holder is None else holder}"
