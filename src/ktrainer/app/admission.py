"""Puts the admission webhook together: the same runtimes as the controllers', on every replica."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import CONFIG_MAPS
from ktrainer.framework.watch import Watch
from ktrainer.machinery.admission.hook import Hook
from ktrainer.machinery.admission.server import ServerOptions
from ktrainer.machinery.webhooks import add_webhooks
from ktrainer.webhook import registration
from ktrainer.webhook.defaulter import TrainJobDefaulter
from ktrainer.webhook.metrics import Denials
from ktrainer.webhook.trainingruntime import RuntimeValidator
from ktrainer.webhook.trainjob import TrainJobValidator

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.api.configuration import Configuration
    from ktrainer.app.clusterview import ClusterView
    from ktrainer.framework.reader import Reader
    from ktrainer.machinery.admission.server import AdmissionServer
    from ktrainer.machinery.operator import Operator
    from ktrainer.machinery.servingcertificates import Certificates
    from ktrainer.runtime.registry import Runtimes

_SNAPSHOTS: Final = Watch(CONFIG_MAPS, labelled=True)
"""What decides on updates; from the cache, a webhook that runs alone need not ask for it each time."""


def add_admission(
    operator: Operator, view: ClusterView, runtimes: Runtimes, configuration: Configuration, certificates: Certificates
) -> AdmissionServer:
    """Let every replica of an operator serve the webhook, once its caches are complete and it has a certificate."""
    view.follow(_SNAPSHOTS)
    options = ServerOptions(configuration.webhook.host or None, configuration.webhook.port)
    hooks = build_hooks(runtimes, view, Denials(operator.registry), operator.clock)
    return add_webhooks(operator, certificates, hooks, options)


def build_hooks(runtimes: Runtimes, reader: Reader, denials: Denials, clock: Clock) -> list[Hook]:
    """All hooks, each at its path."""
    handlers = {
        registration.TRAINJOB_VALIDATOR: TrainJobValidator(runtimes, reader).handle,
        registration.TRAINING_RUNTIME_VALIDATOR: RuntimeValidator(
            registration.TRAINING_RUNTIME_VALIDATOR.resource, refuses_updates=False
        ).handle,
        registration.CLUSTER_TRAINING_RUNTIME_VALIDATOR: RuntimeValidator(
            registration.CLUSTER_TRAINING_RUNTIME_VALIDATOR.resource, refuses_updates=True
        ).handle,
        registration.TRAINJOB_DEFAULTER: TrainJobDefaulter(clock).handle,
    }
    return [
        Hook(entry.path, denials.counted(entry.resource.kind, handle), is_mutating=entry.is_mutating)
        for entry, handle in handlers.items()
    ]
