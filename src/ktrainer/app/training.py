"""Puts the training domain together: plugins, framework, runtimes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ktrainer.api.gates import Gate, open_gates
from ktrainer.framework.registry import Selection, build_framework
from ktrainer.plugins.registry import REGISTRY
from ktrainer.runtime.registry import Materials, Runtimes, build_runtimes

if TYPE_CHECKING:
    from collections.abc import Collection

    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.observer import Observer


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
    gated = () if Gate.TRAINJOB_STATUS in opened else ("trainjobstatus",)
    wanted = replace(selection or Selection(), gated=gated)
    return build_runtimes(
        Materials(dependencies.reader, lambda: build_framework(REGISTRY, dependencies, wanted, observer))
    )
