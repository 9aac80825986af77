"""Admission webhooks of an operator, with serving certificates of its own.

Apart from `operator`, because the library behind certificates takes its time to load.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ktrainer.client.eventbody import ObjectReference
from ktrainer.machinery.admissionserver import AdmissionServer, ServerOptions
from ktrainer.machinery.cabundle import BundleInjector, Configuration
from ktrainer.machinery.certificates import CertificateRotator, Rotation
from ktrainer.machinery.certsecret import CertificateSecret
from ktrainer.machinery.expiry import ExpiryWatch
from ktrainer.machinery.health import Unhealthy
from ktrainer.machinery.runnable import Runnable, Stage
from ktrainer.machinery.servingcert import ServingCertificate
from ktrainer.machinery.webhookmetrics import CertificateMetrics, WebhookMetrics

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.admission import Hook
    from ktrainer.machinery.operator import Operator
    from ktrainer.machinery.pki import PkiPolicy


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Where hooks are served, and with which certificates."""

    secret: ObjectKey
    """The Secret that the replicas share their certificates in; made where it is missing."""
    configurations: Sequence[Configuration]
    """The webhook configurations that are to trust the certificates."""
    policy: PkiPolicy
    server: ServerOptions = field(default_factory=ServerOptions)


def add_webhooks(operator: Operator, settings: WebhookSettings, hooks: Sequence[Hook]) -> AdmissionServer:
    """Let every replica of an operator serve these hooks once its caches are complete."""
    connection, clock = operator.connection, operator.clock
    serving = ServingCertificate()
    secret = settings.secret

    def warn(not_after: datetime) -> None:
        regarding = ObjectReference("v1", "Secret", secret.namespace, secret.name, "")
        note = f"the serving certificate ends at {not_after.isoformat()}"
        operator.recorder.record(regarding, "Warning", "CertificateExpires", "Rotate", note)

    parts = Rotation(
        secret=CertificateSecret(connection.unfenced, secret),
        injector=BundleInjector(connection.unfenced, settings.configurations, settings.policy.authority_name),
        serving=serving,
        expiry=ExpiryWatch(CertificateMetrics(operator.registry), warn, clock),
        policy=settings.policy,
    )
    server_time = connection.client.server_time
    rotator = CertificateRotator(parts, clock=clock, server_time=server_time, random=operator.random)
    server = AdmissionServer(serving.context, WebhookMetrics(operator.registry), settings.server)
    for hook in hooks:
        server.register(hook)

    def check() -> None:
        if not rotator.is_ready:
            raise Unhealthy("there is no certificate yet that the webhook configurations trust")

    operator.readyz.add("certificates", check)
    operator.manager.add(Stage.WEBHOOKS, Runnable("certificates", rotator.run, wait_ready=rotator.wait_ready))
    operator.manager.add(
        Stage.WEBHOOKS, Runnable("webhooks", server.run, wait_ready=server.wait_listening, stop=server.stop)
    )
    return server
