"""Adds the two controllers that keep runtimes while they are in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.gates import Gate
from ktrainer.controllers.protection.reconciler import RuntimeProtector
from ktrainer.controllers.protection.usage import Usage
from ktrainer.machinery.control.controller import ControllerSettings

if TYPE_CHECKING:
    from collections.abc import Collection

    from ktrainer.api.configuration import Configuration
    from ktrainer.app.clusterview import ClusterView
    from ktrainer.machinery.operator import Operator


def add_protection(
    operator: Operator, view: ClusterView, configuration: Configuration, gates: Collection[Gate]
) -> None:
    """Protect runtimes, or with the gate closed take the protection away; this works while this replica leads."""
    client = operator.connection.client
    is_on = Gate.RUNTIME_IN_USE_PROTECTION in gates
    usage = Usage(view.trainjobs, client) if is_on else None
    for runtimes in (view.training_runtimes, view.cluster_training_runtimes):
        kind = runtimes.view.resource.group_kind
        protector = RuntimeProtector(runtimes, usage, client)
        settings = ControllerSettings(
            f"{kind.kind.lower()}_controller", workers=configuration.controller.group_kind_concurrency.get(str(kind), 1)
        )
        queue = operator.controller(settings, protector.reconcile)
        protector.wake(queue, view.trainjobs)
