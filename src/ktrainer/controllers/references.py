"""What the TrainJobs in a cache refer to and how they are, read from their bytes without decoding the rest.

These are the functions of the indexes that several controllers share. A TrainJob that cannot be read so is in none of
them; whoever reconciles it says why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from ktrainer.api.labels import GROUP
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from ktrainer.api.trainjobstatus import ENDS, State
from ktrainer.kube.conditions import TRUE
from ktrainer.kube.identity import GroupKind, ObjectKey

if TYPE_CHECKING:
    from ktrainer.kube.identity import Resource
    from ktrainer.machinery.cache.objects import CachedObject

UNFINISHED_BY_RUNTIME: Final = "unfinished by runtime"
"""The name of the index of `unfinished_by_runtime`; ask it by `runtime_value`."""
BY_STATE: Final = "state"
"""The name of the index of `by_state`; ask it by a `State`."""

_RUNTIMES: Final = {resource.group_kind: resource for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)}
_STATES: Final[dict[str | None, State]] = {state.value: state for state in State}


class RuntimeRef(msgspec.Struct, rename="camel", gc=False):
    """`spec.runtimeRef` of a TrainJob."""

    name: str
    api_group: str = GROUP
    kind: str = CLUSTER_TRAINING_RUNTIMES.kind


class _Spec(msgspec.Struct, rename="camel", gc=False):
    runtime_ref: RuntimeRef
    suspend: bool | None = False


class _Condition(msgspec.Struct, gc=False):
    type: str
    status: str


class _Status(msgspec.Struct, gc=False):
    conditions: list[_Condition] | None = None
    state: str | None = None


_specs = msgspec.json.Decoder(_Spec)
_statuses = msgspec.json.Decoder(_Status)


class Reference(NamedTuple):
    """A runtime of ours that a TrainJob refers to."""

    resource: Resource
    key: ObjectKey


def runtime_value(resource: Resource, key: ObjectKey) -> str:
    """The value by which a runtime is found in the index."""
    return f"{resource.kind}/{key}"


def unfinished_by_runtime(trainjob: CachedObject) -> tuple[str, ...]:
    """The value of the runtime that a TrainJob needs, if it does."""
    needed = needed_runtime_of(trainjob)
    return () if needed is None else (runtime_value(*needed),)


def needed_runtime_of(trainjob: CachedObject) -> Reference | None:
    """The runtime that a TrainJob refers to, unless the TrainJob has finished or the runtime is none of ours."""
    if _end_of(_status_of(trainjob)) is not None:
        return None
    try:
        ref = _specs.decode(trainjob.spec).runtime_ref
    except (msgspec.MsgspecError, RecursionError):
        return None
    runtime = _RUNTIMES.get(GroupKind(ref.api_group, ref.kind))
    if runtime is None:
        return None
    return Reference(runtime, ObjectKey(trainjob.metadata.namespace if runtime.namespaced else "", ref.name))


def by_state(trainjob: CachedObject) -> tuple[State, ...]:
    """The state of a TrainJob; where nobody has written it yet, what it would be."""
    return (_state_of(trainjob),)


def _state_of(trainjob: CachedObject) -> State:
    status = _status_of(trainjob)
    end = _end_of(status)
    if end is not None:
        return end
    written = _STATES.get(status.state)
    if written is not None:
        return written
    try:
        return State.SUSPENDED if _specs.decode(trainjob.spec).suspend else State.PENDING
    except (msgspec.MsgspecError, RecursionError):
        return State.PENDING


def _status_of(trainjob: CachedObject) -> _Status:
    try:
        return _statuses.decode(trainjob.status) if trainjob.status else _Status()
    except (msgspec.MsgspecError, RecursionError):
        return _Status()


def _end_of(status: _Status) -> State | None:
    ends = (ENDS.get(each.type) for each in status.conditions or () if each.status == TRUE)
    return next(filter(None, ends), None)
