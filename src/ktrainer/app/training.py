"""Puts the training domain together: plugins, framework, runtimes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.gates import Gate, open_gates
from ktrainer.framework.registry import build_framework
from ktrainer.plugins.registry import REGISTRY
from ktrainer.runtime.registry import Materials, Runtimes, build_runtimes

if TYPE_CHECKING:
    from collections.abc import Collection

    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.observer import Observer
    from ktrainer.framework.registry import Selection


def build_training(
    dependencies: Dependencies,
    selection: Selection | None = None,
    gates: Collection[Gate] | None = None,
    observer: Observer | None = None,
) -> Runtimes:
    """All runtimes, with the wanted plugins and what the open gates let in; by default the gates' own.

    Raises RegistryError where the plugins cannot be put together.
    """
    opened = open_gates() if gates is None else gates
    registry = {
        name: factory
        for name, factory in REGISTRY.items()
        if name != "trainjobstatus" or Gate.TRAINJOB_STATUS in opened
    }
    return build_runtimes(
        Materials(dependencies.reader, lambda: build_framework(registry, dependencies, selection, observer))
    )
