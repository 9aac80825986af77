"""The serving certificate of an operator: one for all its servers, made by itself or taken from a folder.

Apart from `operator`, because the library behind certificates takes its time to load. The certificate is seen to from
the very start, so that it is there by the time that the caches are complete.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ktrainer.client.events.body import ObjectReference
from ktrainer.machinery.certificates.cabundle import BundleInjector, Configuration
from ktrainer.machinery.certificates.expiry import ExpiryWatch
from ktrainer.machinery.certificates.files import CertificateFiles
from ktrainer.machinery.certificates.metrics import CertificateMetrics
from ktrainer.machinery.certificates.rotator import SETTLE_SECONDS, CertificateRotator, RotatorParts
from ktrainer.machinery.certificates.secret import CertificateSecret
from ktrainer.machinery.certificates.serving import DEFAULT_TLS, ServingCertificate
from ktrainer.machinery.runnable import Runnable, Stage
from ktrainer.machinery.serving.health import Unhealthy

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Coroutine, Sequence
    from datetime import datetime
    from typing import Any

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.certificates.files import CertificateFolder
    from ktrainer.machinery.certificates.pki import PkiPolicy
    from ktrainer.machinery.certificates.serving import TlsPolicy
    from ktrainer.machinery.operator import Operator


@dataclass(frozen=True, slots=True)
class CertificateSettings:
    """Which certificates an operator makes, and who is to trust them."""

    secret: ObjectKey
    """The Secret that the replicas share their certificates in; made where it is missing."""
    configurations: Sequence[Configuration]
    """The webhook configurations that are to trust the certificates."""
    policy: PkiPolicy
    settle_seconds: float = SETTLE_SECONDS
    """How long callers may take to trust a new authority, while there is a certificate of the former one."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """The serving certificate of an operator, as its servers use it."""

    context: ssl.SSLContext
    """What to listen with; handshakes fail until there is a certificate, and have the newest from then on."""
    wait_ready: Callable[[], Coroutine[Any, Any, None]]
    """Returns when there is a certificate that callers trust."""


def add_certificates(operator: Operator, settings: CertificateSettings, tls: TlsPolicy = DEFAULT_TLS) -> Certificates:
    """Let every replica of an operator make, share and renew its certificates."""
    connection, clock, secret = operator.connection, operator.clock, settings.secret
    serving, metrics = ServingCertificate(tls=tls), CertificateMetrics(operator.registry)

    def warn(not_after: datetime) -> None:
        regarding = ObjectReference("v1", "Secret", secret.namespace, secret.name, "")
        note = f"the serving certificate ends at {not_after.isoformat()}"
        operator.recorder.record(regarding, "Warning", "CertificateExpires", "Rotate", note)

    parts = RotatorParts(
        secret=CertificateSecret(connection.unfenced, secret),
        injector=BundleInjector(connection.unfenced, settings.configurations, settings.policy.authority_name),
        serving=serving,
        expiry=ExpiryWatch(metrics, warn, clock),
        policy=settings.policy,
        settle_seconds=settings.settle_seconds,
        metrics=metrics,
    )
    server_time = connection.client.server_time
    rotator = CertificateRotator(parts, clock=clock, server_time=server_time, random=operator.random)
    _add(operator, rotator, "there is no certificate yet that the webhook configurations trust")
    return Certificates(serving.context, rotator.wait_ready)


def add_certificate_files(operator: Operator, folder: CertificateFolder, tls: TlsPolicy = DEFAULT_TLS) -> Certificates:
    """Let an operator serve the certificate that somebody else puts into a folder."""
    serving, metrics = ServingCertificate(tls=tls), CertificateMetrics(operator.registry)
    # Whoever provides the files also sees to their end; the log and the metric tell of it.
    expiry = ExpiryWatch(metrics, lambda _: None, operator.clock)
    files = CertificateFiles(folder, serving, expiry=expiry, metrics=metrics, clock=operator.clock)
    _add(operator, files, f"there is no usable certificate yet in {folder.path}")
    return Certificates(serving.context, files.wait_ready)


def _add(operator: Operator, keeper: CertificateRotator | CertificateFiles, problem: str) -> None:
    def check() -> None:
        if not keeper.is_ready:
            raise Unhealthy(problem)

    operator.readyz.add("certificates", check)
    operator.manager.add(Stage.BACKGROUND, Runnable("certificates", keeper.run))
