"""Which runtime answers for a TrainJob: by kind and group of what it refers to, "<Kind>.<apiGroup>"."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from ktrainer.kube.identity import GroupKind
from ktrainer.runtime.errors import UnsupportedRuntime
from ktrainer.runtime.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ktrainer.api.trainjob import RuntimeRef
    from ktrainer.framework.framework import Framework
    from ktrainer.framework.reader import Reader


@dataclass(frozen=True, slots=True)
class Materials:
    """What the factory of a runtime is handed."""

    reader: Reader
    build_framework: Callable[[], Framework]


@dataclass(frozen=True, slots=True)
class Registration:
    """How a runtime is made."""

    build: Callable[[Materials, Mapping[str, Runtime]], Runtime]
    needs: tuple[str, ...] = ()
    """The runtimes that must be made before; they are among those that `build` gets."""


def _build_cluster_runtime(materials: Materials, runtimes: Mapping[str, Runtime]) -> Runtime:
    return Runtime(CLUSTER_TRAINING_RUNTIMES, runtimes[_NAMESPACED].framework, materials.reader)


_NAMESPACED: Final = str(TRAINING_RUNTIMES.group_kind)
_CLUSTER: Final = str(CLUSTER_TRAINING_RUNTIMES.group_kind)

REGISTRY: Final[Mapping[str, Registration]] = {
    _NAMESPACED: Registration(
        lambda materials, _: Runtime(TRAINING_RUNTIMES, materials.build_framework(), materials.reader)
    ),
    # It has the framework of the other: plugins exist once.
    _CLUSTER: Registration(_build_cluster_runtime, needs=(_NAMESPACED,)),
}


class Runtimes:
    """All runtimes that there are."""

    def __init__(self, runtimes: Mapping[str, Runtime]) -> None:
        self._runtimes = dict(runtimes)

    def of(self, ref: RuntimeRef) -> Runtime:
        """The runtime for a reference; raises UnsupportedRuntime."""
        kind = GroupKind(ref.api_group, ref.kind)
        runtime = self._runtimes.get(str(kind))
        if runtime is None:
            raise UnsupportedRuntime(kind)
        return runtime

    def all(self) -> tuple[Runtime, ...]:
        """The runtimes, in the order in which they were made."""
        return tuple(self._runtimes.values())


def build_runtimes(materials: Materials, registry: Mapping[str, Registration] = REGISTRY) -> Runtimes:
    """Make all runtimes, each after those that it needs; raises ValueError for needs that cannot be met."""
    made: dict[str, Runtime] = {}

    def make(key: str, waiting: Iterable[str]) -> None:
        if key in made:
            return
        if key in waiting or key not in registry:
            raise ValueError(f"the runtime {key} needs itself, or is not registered: {' -> '.join((*waiting, key))}")
        for need in registry[key].needs:
            make(need, (*waiting, key))
        made[key] = registry[key].build(materials, made)

    for key in registry:
        make(key, ())
    return Runtimes(made)
