"""The requests of one candidate in a leader election: reading the Lease, claiming it, giving it back.

What is learnt goes into an `Election`; when to do what is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

import structlog

from ktrainer.aio.cancellation import uncancelled
from ktrainer.kube.errors import Conflict, NotFound
from ktrainer.machinery.election.lease import LEASES, MalformedLease, build_claim, build_release, parse_lease

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from ktrainer.aio.clock import Clock
    from ktrainer.kube.identity import ObjectKey, Resource
    from ktrainer.machinery.election.election import Election

_log = structlog.get_logger(__name__)


class LeaseClient(Protocol):
    """The requests of an election. They need a connection of their own, without throttle, long waits and fence."""

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        """Return the object; raises NotFound when there is none."""
        ...

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        """Create the object and return it as stored."""
        ...

    async def update(self, resource: Resource, key: ObjectKey, body: bytes) -> bytes:
        """Replace the version of the object that the body names, and return it as stored."""
        ...


class Candidate:
    """Speaks to the API server for one process. Every request has a limit of its own and may raise anything."""

    def __init__(self, client: LeaseClient, election: Election, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._settings = election.settings
        self.election = election
        self.may_hold = False
        """Whether a claim of ours may be in the Lease, for all we know."""
        self._problems: tuple[str, ...] = ()
        """What was last reported as unintelligible in the Lease."""

    @property
    def state(self) -> str:
        """What we last saw, in words."""
        lease = self.election.lease
        if lease is None:
            return "absent"
        return f"held by {lease.holder or 'somebody unintelligible'}" if lease.holder != "" else "free"

    async def look(self) -> None:
        """Read the Lease."""
        former = self.state
        try:
            lease = parse_lease(await self._limited(self._client.get(LEASES, self._settings.key)))
        except NotFound as error:
            # Something else than the API server may have said so, too, such as a proxy that knows no such path.
            if error.reason != "NotFound":
                raise
            self.election.observe_absence()
        else:
            self.election.observe(lease, self._clock.monotonic())
            if lease.problems and lease.problems != self._problems:
                _log.error("the lease holds what nobody should have written", problems=lease.problems)
            self._problems = lease.problems
        if not self.election.is_ours:
            self.may_hold = False
            if self.state != former:
                _log.info("the lease is not ours", state=self.state)

    async def claim(self) -> None:
        """Write ourselves into the version of the Lease that we know."""
        lease, key = self.election.lease, self._settings.key
        body = build_claim(lease, key, self._settings.identity, self._settings.times.lease_seconds, self._clock.now())
        self.may_hold = True
        sent_at = self._clock.monotonic()
        if lease is None:
            answer = await self._limited(self._client.create(LEASES, key.namespace, body))
        else:
            answer = await self._limited(self._client.update(LEASES, key, body))
        stored = parse_lease(answer)
        if stored.holder != self._settings.identity:
            raise MalformedLease(f"the server took our claim and answered that {stored.holder!r} holds the lease")
        self.election.won(stored, sent_at, self._clock.monotonic())

    async def give_back(self) -> None:
        """Empty the Lease, if it is ours, so that the next leader need not wait; never fails, but may be in vain."""
        try:
            async with asyncio.timeout(self._settings.times.renew_deadline_seconds):
                while self.may_hold:
                    await self._try_to_give_back()
        except Exception as error:  # the lease will expire by itself
            _log.warning("could not give the lease back", error=f"{type(error).__name__}: {error}")

    async def _try_to_give_back(self) -> None:
        await self.look()
        if self.election.lease is None or not self.election.is_ours:
            return
        body = build_release(self.election.lease, self._clock.now())
        try:
            await self._limited(self._client.update(LEASES, self._settings.key, body))
        except Conflict:
            return
        self.may_hold = False
        _log.info("gave the lease back")

    async def _limited(self, request: Awaitable[bytes]) -> bytes:
        async with asyncio.timeout(self._settings.times.request_seconds):
            return await uncancelled(lambda: request)
