"""Puts the training domain together: plugins, framework, runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.gates import Gate, open_gates
from ktrainer.framework.registry import build_framework
from ktrainer.plugins.registry import REGISTRY
from ktrainer.runtime.registry import Materials, Runtimes, build_runtimes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.framework import Framework


def build_training(dependencies: Dependencies, gates: Mapping[str, bool] | None = None) -> Runtimes:
    """All runtimes, with the plugins that configuration and gates want; `gates` go before those of the configuration.

    Raises RegistryError where the plugins cannot be put together.
    """
    opened = open_gates(dependencies.configuration.feature_gates, gates or {})
    registry = {
        name: factory
        for name, factory in REGISTRY.items()
        if name != "trainjobstatus" or Gate.TRAINJOB_STATUS in opened
    }

    def framework() -> Framework:
        return build_framework(registry, dependencies)

    return build_runtimes(Materials(dependencies.reader, framework))
