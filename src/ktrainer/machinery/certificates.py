"""Serving certificates of our own: made, shared between replicas, trusted by API servers, renewed in time.

Every replica runs this, and none leads. Whoever finds the Secret in need of renewal writes it, and where several do,
one of them succeeds and the others adopt what it wrote. What is served is always trusted: a new authority is put into
the webhook configurations first, next to the former ones, and presented only after API servers have had time to notice.
Whatever happens to the Secret, the pair in memory goes on being served until there is a better one.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Protocol

import structlog

from ktrainer.aio.backoff import Backoff, BackoffPolicy
from ktrainer.kube.errors import AlreadyExists, ApiError, Conflict
from ktrainer.machinery.certvalidity import certificates_of
from ktrainer.machinery.pki import BACKDATED
from ktrainer.machinery.rotation import Action, Decision, Material, build_material, decide_rotation, is_usable

if TYPE_CHECKING:
    from random import Random

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.cabundle import BundleInjector, Injection
    from ktrainer.machinery.certsecret import CertificateSecret, Stored
    from ktrainer.machinery.expiry import ExpiryWatch
    from ktrainer.machinery.pki import PkiPolicy
    from ktrainer.machinery.servingcert import ServingCertificate

_log = structlog.get_logger(__name__)

CHECK_SECONDS = 8.0
"""The time between two looks at the Secret and the configurations: damage is to be repaired within 10 s."""

SETTLE_SECONDS = 5.0
"""How long an authority must have been in the configurations before what it issued is presented."""

SETTLED_AGE = timedelta(minutes=1)
"""The age from which on an authority that is found in the configurations is taken to have been there for long."""

MAX_SKEW = timedelta(minutes=5)
"""With clocks this far apart nothing is renewed: one of them is wrong, and it may be ours."""

RETRY = BackoffPolicy(initial_seconds=0.01, factor=2.0, cap_seconds=4.0, jitter=1.0)
"""The first retry is soon, because losing a race to another replica is the usual reason."""


class ServerClock(Protocol):
    """The API server's clock, which judges what has expired: it is the one that will look at our certificates."""

    def now(self) -> datetime:
        """Return the time there."""
        ...

    @property
    def skew(self) -> timedelta:
        """How far it is ahead of ours."""
        ...


@dataclass(frozen=True, slots=True)
class Rotation:
    """The parts that a rotator joins."""

    secret: CertificateSecret
    injector: BundleInjector
    serving: ServingCertificate
    expiry: ExpiryWatch
    policy: PkiPolicy
    settle_seconds: float = SETTLE_SECONDS


class CertificateRotator:
    """Keeps one serving certificate good, for as long as `run` runs."""

    def __init__(self, parts: Rotation, *, clock: Clock, server_time: ServerClock, random: Random) -> None:
        self._parts = parts
        self._clock = clock
        self._server_time = server_time
        self._backoff = Backoff(RETRY, clock, random)
        self._served: Material | None = None
        """What is being served."""
        self._trusted: tuple[bytes, float] | None = None
        """The authority that all configurations have, and when it may be presented; None if any of them lacks it."""
        self._ready = asyncio.Event()
        self._wake = asyncio.Event()

    @property
    def is_ready(self) -> bool:
        """Whether a certificate is served that all webhook configurations were seen to trust."""
        return self._ready.is_set()

    async def wait_ready(self) -> None:
        """Wait for the first certificate that is served and trusted."""
        await self._ready.wait()

    def wake(self) -> None:
        """Look at Secret and configurations now, because one of them has changed."""
        self._wake.set()

    async def run(self) -> None:
        """Check and repair, over and over, until cancelled; failures are logged and tried again."""
        while True:
            delay = await self._attempt()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            self._wake.clear()

    async def _attempt(self) -> float:
        """Check once, and return the seconds until the next time."""
        try:
            await self._check()
        except (AlreadyExists, Conflict):
            _log.info("another replica was faster to renew the certificates")
        except Exception as error:  # a supervised loop: it must outlive whatever it meets
            _log.warning("certificates could not be checked", error=repr(error))
        else:
            self._backoff.reset()
            return min(CHECK_SECONDS, self._seconds_to_settle() or CHECK_SECONDS)
        return self._backoff.next_delay()

    async def _check(self) -> None:
        stored = await self._parts.secret.read()
        now = self._server_time.now()
        self._parts.expiry.check(now)
        decision = decide_rotation(stored.material, self._parts.policy, now)
        material = stored.material if decision.action is Action.KEEP else await self._renew(stored, decision, now)
        if not is_usable(material, self._parts.policy, now):
            if self._served is None:
                return
            material = self._served
        authorities = [material.authority.certificate, material.previous]
        if self._served is not None:
            authorities.append(self._served.authority.certificate)
        injection = await self._parts.injector.inject(authorities, now)
        self._note_trust(material, injection, now)
        self._serve(material, now)

    async def _renew(self, stored: Stored, decision: Decision, now: datetime) -> Material:
        """Write what is needed and return it, or return what is there if that cannot be done."""
        facts = {"action": decision.action.value, "reason": decision.reason}
        if abs(self._server_time.skew) > MAX_SKEW:
            skew = self._server_time.skew.total_seconds()
            _log.error("certificates not renewed: our clock is not the API server's", skew_seconds=skew, **facts)
            return stored.material
        known = [] if self._served is None else [self._served.authority.certificate, self._served.previous]
        material = build_material(decision.action, stored.material, self._parts.policy, now, known)
        try:
            await self._parts.secret.write(stored, material)
        except (AlreadyExists, Conflict):
            raise
        except ApiError as error:
            _log.error("certificates not renewed: the Secret cannot be written", error=str(error), **facts)
            return stored.material
        _log.info("certificates renewed", **facts)
        return material

    def _note_trust(self, material: Material, injection: Injection, now: datetime) -> None:
        authority = material.authority.certificate
        if not injection.is_complete:
            self._trusted = None
        elif injection.has_written or self._trusted is None or self._trusted[0] != authority:
            # After a restart, an authority that is not quite new has been there all the time.
            is_old = now - certificates_of(authority)[0].not_valid_before_utc - BACKDATED > SETTLED_AGE
            is_settled = is_old and self._served is None and not injection.has_written
            wait_seconds = 0.0 if is_settled else self._parts.settle_seconds
            self._trusted = (authority, self._clock.monotonic() + wait_seconds)

    def _seconds_to_settle(self) -> float:
        """How long until something may be presented that is not yet; 0 where nothing waits for that."""
        if self._trusted is None or (self._served and self._served.authority.certificate == self._trusted[0]):
            return 0.0
        return max(0.0, self._trusted[1] - self._clock.monotonic())

    def _serve(self, material: Material, now: datetime) -> None:
        """Present this material, if it is not yet presented and it is time to."""
        if self._served is not None and self._served.serving == material.serving:
            return
        has_expired = self._served is not None and not is_usable(self._served, self._parts.policy, now)
        is_trusted = self._trusted is not None and self._clock.monotonic() >= self._trusted[1]
        if not is_trusted and not has_expired:
            # There is no hurry: what is served will do, or nobody calls us yet.
            return
        self._parts.serving.install(material.serving.certificate, material.serving.key)
        self._served = material
        self._ready.set()
        not_after = certificates_of(material.serving.certificate)[0].not_valid_after_utc
        self._parts.expiry.served(not_after)
        _log.info("serving certificate in use", not_after=not_after.isoformat())
