"""A cached TrainJob as the model that a turn works with, or of one that is malformed as much as can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ktrainer.api.decoding import decode
from ktrainer.api.trainjob import TrainJob, TrainJobSpec
from ktrainer.api.trainjobstatus import TrainJobStatus
from ktrainer.kube import fields
from ktrainer.kube.fields import Path, message_of
from ktrainer.kube.jsonvalue import is_deeper_than
from ktrainer.machinery.cache.objects import decoded

if TYPE_CHECKING:
    from msgspec import Raw
    from pydantic import BaseModel

    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.machinery.cache.objects import CachedObject

DEEPEST: Final = 100
"""How many levels of a spec may be nested: no sound one has so many, and what we build of it has more."""

_FOLLOWED: Final = ("runtimeRef", "suspend", "activeDeadlineSeconds", "managedBy")
"""What a TrainJob that has a workload is followed by, each field by itself."""


class Malformed(Exception):
    """A TrainJob that cannot be read as a whole, so that nothing can be built for it."""

    def __init__(self, errors: ErrorList) -> None:
        super().__init__(f"the TrainJob is malformed: {message_of(errors)}")


def read_trainjob(cached: CachedObject) -> TrainJob | ErrorList:
    """Read a TrainJob; a non-empty list of errors where it is malformed.

    What cannot be read of a status is passed over: others write to it, too, and it is for us to say how a TrainJob is.
    """
    too_deep = [fields.invalid(Path("spec"), "object", f"must not be nested more than {DEEPEST} levels deep")]
    try:
        spec, status = decoded(cached.spec), decoded(cached.status) or {}
    except RecursionError:
        return too_deep
    if is_deeper_than(spec, DEEPEST):
        return too_deep
    value = {"metadata": cached.metadata, "spec": spec}
    read = decode(TrainJob, {**value, "status": status})
    return decode(TrainJob, {**value, "status": _readable_status(status)}) if isinstance(read, list) else read


def readable_part(cached: CachedObject) -> TrainJob:
    """What can be read of a TrainJob that is malformed: it may have a workload, from when it was not."""
    given, part = _object_in(cached.spec), {"runtimeRef": {"name": "unreadable"}}
    for name in filter(given.__contains__, _FOLLOWED):
        part = _with(TrainJobSpec, part, name, given[name])
    # Not validated, since its name may be what is wrong with it.
    return TrainJob.model_construct(
        metadata=cached.metadata,
        spec=TrainJobSpec.model_validate(part, by_alias=True, by_name=False),
        status=TrainJobStatus.model_validate(_readable_status(_object_in(cached.status)), by_alias=True, by_name=False),
    )


def _readable_status(given: Any) -> JsonObject:
    part: JsonObject = {}
    for name, value in given.items() if isinstance(given, dict) else ():
        if isinstance(value, list):
            value = [item for item in value if _with(TrainJobStatus, {}, name, [item])]
        part = _with(TrainJobStatus, part, name, value)
    return part


def _with(model: type[BaseModel], part: JsonObject, name: str, value: Any) -> JsonObject:
    """What was read with one more field, if that can be read, too."""
    more = {**part, name: value}
    return part if is_deeper_than(value, DEEPEST) or isinstance(decode(model, more), list) else more


def _object_in(raw: Raw) -> JsonObject:
    """The object in a spec or status; an empty one where that is something else."""
    try:
        value = decoded(raw)
    except RecursionError:
        return {}
    return value if isinstance(value, dict) else {}
