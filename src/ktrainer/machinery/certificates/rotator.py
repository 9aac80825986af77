"""Serving certificates of our own: made, shared between replicas, trusted by API servers, renewed in time.

Every replica runs this, and none leads. Whoever finds the Secret in need of renewal writes it, and where several do,
one of them succeeds and the others adopt what it wrote. What is served is always trusted: a new authority is put into
the webhook configurations first, next to the former ones, and presented only after callers have had time to notice.
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
from ktrainer.machinery.certificates.pki import BACKDATED
from ktrainer.machinery.certificates.rotation import (
    Action,
    Decision,
    Material,
    build_material,
    decide_rotation,
    is_usable,
)
from ktrainer.machinery.certificates.validity import certificates_of, end_of

if TYPE_CHECKING:
    from random import Random

    from ktrainer.aio.clock import Clock
    from ktrainer.machinery.certificates.cabundle import BundleInjector, Injection
    from ktrainer.machinery.certificates.expiry import ExpiryWatch
    from ktrainer.machinery.certificates.metrics import CertificateMetrics
    from ktrainer.machinery.certificates.pki import PkiPolicy
    from ktrainer.machinery.certificates.secret import CertificateSecret, Stored
    from ktrainer.machinery.certificates.serving import ServingCertificate

_log = structlog.get_logger(__name__)

CHECK_SECONDS = 8.0
"""The time between two looks at the Secret and the configurations: damage is to be repaired within 10 s."""

SETTLE_SECONDS = 5.0
"""How long an authority must have been in the configurations before what it issued is presented.

That is for API servers to notice; whoever has other callers, too, may have to wait longer.
"""

SETTLED_AGE = timedelta(minutes=1)
"""The age from which on an authority that is found in configurations, of which the server does not tell when they
were changed, is taken to have been there for long."""

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
class RotatorParts:
    """The parts that a rotator joins."""

    secret: CertificateSecret
    injector: BundleInjector
    serving: ServingCertificate
    expiry: ExpiryWatch
    policy: PkiPolicy
    metrics: CertificateMetrics
    """What counts the looks at the Secret."""
    settle_seconds: float = SETTLE_SECONDS
    """How long a new authority must have been trusted before what it issued replaces a certificate that is still good;
    where there is none, nobody gains by waiting longer than SETTLE_SECONDS."""


class CertificateRotator:
    """Keeps one serving certificate good, for as long as `run` runs."""

    def __init__(self, parts: RotatorParts, *, clock: Clock, server_time: ServerClock, random: Random) -> None:
        self._parts = parts
        self._clock = clock
        self._server_time = server_time
        self._backoff = Backoff(RETRY, clock, random)
        self._served: Material | None = None
        """What is being served."""
        self._trusted: tuple[bytes, float] | None = None
        """The authority that all configurations have, and when it may be presented; None if any of them lacks it."""
        self._waiting: Material | None = None
        """What is to be presented once its authority may be, whatever becomes of the Secret until then."""
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
        if self._waiting is not None:
            # The API server may be unreachable, or the Secret damaged, just when its time has come.
            self._serve(self._waiting, self._server_time.now())
        # A Secret that cannot be read is the very reason why a certificate is not renewed.
        self._parts.expiry.check(self._server_time.now())
        stored = await self._read()
        now = self._server_time.now()
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

    async def _read(self) -> Stored:
        metrics = self._parts.metrics
        metrics.reads.inc()
        try:
            stored = await self._parts.secret.read()
        except Exception:
            metrics.read_errors.inc()
            raise
        # A Secret is empty before the first certificate is made.
        is_new = self._served is None and not any(stored.material.data().values())
        if not is_new and not is_usable(stored.material, self._parts.policy, self._server_time.now()):
            metrics.read_errors.inc()
        return stored

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
            is_found = self._served is None and not injection.has_written
            wait_seconds = self._time_to_wait(authority, injection, now) if is_found else self._settle_seconds
            self._trusted = (authority, self._clock.monotonic() + wait_seconds)

    @property
    def _settle_seconds(self) -> float:
        seconds = self._parts.settle_seconds
        return min(seconds, SETTLE_SECONDS) if self._served is None else seconds

    def _time_to_wait(self, authority: bytes, injection: Injection, now: datetime) -> float:
        """How long after a restart an authority must still be in the configurations, in which it was found."""
        settle_seconds = self._settle_seconds
        if injection.changed_at is not None:
            # The server tells whole seconds.
            since = (now - injection.changed_at).total_seconds() - 1
            return min(settle_seconds, max(0.0, settle_seconds - since))
        # One that is not quite new has been there all the time.
        age = now - certificates_of(authority)[0].not_valid_before_utc - BACKDATED
        return 0.0 if age > SETTLED_AGE else settle_seconds

    def _seconds_to_settle(self) -> float:
        """How long until something may be presented that is not yet; 0 where nothing waits for that."""
        if self._trusted is None or (self._served and self._served.authority.certificate == self._trusted[0]):
            return 0.0
        return max(0.0, self._trusted[1] - self._clock.monotonic())

    def _may_present(self, material: Material) -> bool:
        if self._trusted is None:
            return False
        authority, settled_at = self._trusted
        return authority == material.authority.certificate and self._clock.monotonic() >= settled_at

    def _serve(self, material: Material, now: datetime) -> None:
        """Present this material, if it is not yet presented and it is time to."""
        if self._served is not None and self._served.serving == material.serving:
            return
        has_expired = self._served is not None and not is_usable(self._served, self._parts.policy, now)
        if not self._may_present(material) and not has_expired:
            # There is no hurry: what is served will do, or nobody calls us yet.
            self._waiting = material
            return
        self._parts.serving.install(material.serving.certificate, material.serving.key)
        self._served, self._waiting = material, None
        self._ready.set()
        not_after = end_of(material.serving.certificate)
        self._parts.expiry.served(not_after)
        _log.info("serving certificate in use", not_after=not_after.isoformat())
