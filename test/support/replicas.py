"""Replicas that share certificates through a model of an API server, and the API server's view of them."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError
from prometheus_client import CollectorRegistry

from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.certificates.cabundle import MUTATING, VALIDATING, BundleInjector, Configuration
from ktrainer.machinery.certificates.expiry import ExpiryWatch
from ktrainer.machinery.certificates.metrics import CertificateMetrics
from ktrainer.machinery.certificates.pki import PkiPolicy
from ktrainer.machinery.certificates.rotator import SETTLE_SECONDS, CertificateRotator, RotatorParts
from ktrainer.machinery.certificates.secret import SECRETS, CertificateSecret
from ktrainer.machinery.certificates.serving import ServingCertificate
from support.objectstore import bundle_of, webhook_configuration

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.objectstore import ObjectStore
    from support.virtualtime import VirtualClock

NAME = "hook.system.svc"
POLICY = PkiPolicy("hook-ca", (NAME, "localhost"))
SECRET = ObjectKey("system", "hook-certs")


def short_policy(authority: float = 150, serving: float = 60, look_ahead: float = 30) -> PkiPolicy:
    """A policy whose lifetimes are given in seconds."""
    lifetimes = (timedelta(seconds=seconds) for seconds in (authority, serving, look_ahead))
    return PkiPolicy("hook-ca", POLICY.names, *lifetimes)


class ServerTime:
    """The API server's clock, which runs right; the replica's own is off by `skew`."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.skew = timedelta(0)

    def now(self) -> datetime:
        return self._clock.now()


class RecordingCertificate(ServingCertificate):
    """Also remembers what it serves."""

    def __init__(self, installed: Callable[[bytes], None]) -> None:
        super().__init__()
        self._installed = installed
        self.certificate = b""
        self.installs = 0

    def install(self, certificate: bytes, key: bytes) -> None:
        super().install(certificate, key)
        self.certificate = certificate
        self.installs += 1
        self._installed(certificate)


class Replica:
    """One process."""

    def __init__(
        self,
        store: ObjectStore,
        clock: VirtualClock,
        policy: PkiPolicy = POLICY,
        *,
        seed: int = 0,
        settle_seconds: float = SETTLE_SECONDS,
        installed: Callable[[bytes], None] = lambda certificate: None,
    ) -> None:
        self.serving = RecordingCertificate(installed)
        self.server_time = ServerTime(clock)
        self.expiring: list[datetime] = []
        self.registry = CollectorRegistry()
        metrics = CertificateMetrics(self.registry)
        configurations = [Configuration(VALIDATING, "v"), Configuration(MUTATING, "m")]
        parts = RotatorParts(
            secret=CertificateSecret(store, SECRET),
            injector=BundleInjector(store, configurations, policy.authority_name),
            serving=self.serving,
            expiry=ExpiryWatch(metrics, self.expiring.append, clock),
            policy=policy,
            settle_seconds=settle_seconds,
            metrics=metrics,
        )
        self.rotator = CertificateRotator(parts, clock=clock, server_time=self.server_time, random=Random(seed))
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self.rotator.run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def __aenter__(self) -> Replica:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()


def is_trusted(certificate: bytes, bundle: bytes, now: datetime) -> bool:
    """Whether an API server with this bundle takes this certificate; judged by other code than ours."""
    authorities = x509.load_pem_x509_certificates(bundle) if bundle.strip() else []
    if not authorities:
        return False
    # X.509 counts in whole seconds.
    policy = PolicyBuilder().store(Store(authorities)).time(now.replace(microsecond=0))
    try:
        policy.build_server_verifier(x509.DNSName(NAME)).verify(x509.load_pem_x509_certificate(certificate), [])
    except VerificationError:
        return False
    return True


def install_configurations(store: ObjectStore, bundle: bytes | None = None) -> None:
    """Put both webhook configurations there, as an installer does."""
    store.put(VALIDATING.plural, webhook_configuration("v", "one", "two", bundle=bundle))
    store.put(MUTATING.plural, webhook_configuration("m", "three", bundle=bundle))


def current_bundle(store: ObjectStore) -> bytes:
    """What API servers trust now."""
    return bundle_of(store.find(VALIDATING.plural, "v"))


def secret_writes(store: ObjectStore) -> int:
    """How many writes of the Secret were accepted."""
    return sum(plural == SECRETS.plural for _, plural in store.writes)
