"""Which TrainJobs a change of another object concerns, by the indexes of the caches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ktrainer.api.trainjobstatus import State
from ktrainer.controllers.references import BY_STATE, UNFINISHED_BY_RUNTIME, runtime_value
from ktrainer.controllers.trainjob.glance import glance_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.informer import Informer
    from ktrainer.machinery.cache.objects import CachedObject

BY_RUNTIME_CLASS: Final = "runtime class"
"""The name of the index of `by_runtime_class`; ask it by the name of a RuntimeClass."""


class _PodSpec(msgspec.Struct, rename="camel", gc=False):
    runtime_class_name: str | None = None


class _PodTemplate(msgspec.Struct, gc=False):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _JobSpec(msgspec.Struct, gc=False):
    template: _PodTemplate = msgspec.field(default_factory=_PodTemplate)


class _JobTemplate(msgspec.Struct, gc=False):
    spec: _JobSpec = msgspec.field(default_factory=_JobSpec)


class _ReplicatedJob(msgspec.Struct, gc=False):
    template: _JobTemplate = msgspec.field(default_factory=_JobTemplate)


class _JobSetSpec(msgspec.Struct, rename="camel", gc=False):
    replicated_jobs: list[_ReplicatedJob] = msgspec.field(default_factory=list)


class _Template(msgspec.Struct, gc=False):
    spec: _JobSetSpec = msgspec.field(default_factory=_JobSetSpec)


class _RuntimeSpec(msgspec.Struct, gc=False):
    template: _Template = msgspec.field(default_factory=_Template)


_runtimes = msgspec.json.Decoder(_RuntimeSpec)

_TERMINAL: Final = b'"terminalState":"'


def may_have_ended(jobset: CachedObject) -> bool:
    """Whether a JobSet seems to be at its end: a quick look, upon which nothing depends but the order of turns."""
    return _TERMINAL in bytes(jobset.status)


def by_runtime_class(runtime: CachedObject) -> tuple[str, ...]:
    """The runtime classes of a runtime's pods."""
    try:
        jobs = _runtimes.decode(runtime.spec).template.spec.replicated_jobs
    except (msgspec.MsgspecError, RecursionError):
        return ()
    names = (job.template.spec.template.spec.runtime_class_name for job in jobs)
    return tuple(dict.fromkeys(filter(None, names)))


class Concerned:
    """Finds the TrainJobs that a change concerns. For handlers, which are told after the stores have the change."""

    def __init__(self, trainjobs: Informer[CachedObject], runtimes: Iterable[Informer[CachedObject]]) -> None:
        """The TrainJobs have the indexes by runtime and by state, and the runtimes that by runtime class."""
        self._trainjobs = trainjobs.store
        self._runtimes = tuple(runtimes)

    def waiting_for(self, runtimes: Informer[CachedObject], runtime: CachedObject) -> list[ObjectKey]:
        """The TrainJobs that refer to a runtime and have no snapshot, or lost it: to all others it means nothing."""
        value = runtime_value(runtimes.view.resource, runtime.key)
        found = self._trainjobs.by_index(UNFINISHED_BY_RUNTIME, value)
        return [each.key for each in found if (glance := glance_at(each)) and glance.needs_runtime]

    def unfinished(self, obj: CachedObject | None = None) -> list[ObjectKey]:
        """All TrainJobs that have not finished, whatever has changed."""
        states = (State.SUSPENDED, State.PENDING, State.RUNNING)
        return [each.key for state in states for each in self._trainjobs.by_index(BY_STATE, state)]

    def suspended_in(self, obj: CachedObject) -> list[ObjectKey]:
        """The suspended TrainJobs in the namespace of an object."""
        found = self._trainjobs.by_index(BY_STATE, State.SUSPENDED, obj.metadata.namespace)
        return [each.key for each in found]

    def suspended_with_class(self, runtime_class: CachedObject) -> list[ObjectKey]:
        """The suspended TrainJobs whose runtime names a runtime class."""
        suspended = {each.key for each in self._trainjobs.by_index(BY_STATE, State.SUSPENDED)}
        return [
            trainjob.key
            for informer in self._runtimes
            for runtime in informer.store.by_index(BY_RUNTIME_CLASS, runtime_class.metadata.name)
            for trainjob in self._trainjobs.by_index(
                UNFINISHED_BY_RUNTIME, runtime_value(informer.view.resource, runtime.key)
            )
            if trainjob.key in suspended
        ]
