"""A cached TrainJob as the model that a turn works with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.decoding import decode
from ktrainer.api.trainjob import TrainJob
from ktrainer.kube import fields
from ktrainer.kube.fields import Path
from ktrainer.kube.jsonvalue import is_deeper_than
from ktrainer.machinery.cache.objects import decoded

if TYPE_CHECKING:
    from ktrainer.kube.fields import ErrorList
    from ktrainer.machinery.cache.objects import CachedObject

DEEPEST: Final = 100
"""How many levels of a spec may be nested: no sound one has so many, and what we build of it has more."""


def read_trainjob(cached: CachedObject) -> TrainJob | ErrorList:
    """Read a TrainJob; a non-empty list of errors where it is malformed."""
    too_deep = [fields.invalid(Path("spec"), "object", f"must not be nested more than {DEEPEST} levels deep")]
    try:
        spec, status = decoded(cached.spec), decoded(cached.status) or {}
    except RecursionError:
        return too_deep
    if is_deeper_than(spec, DEEPEST):
        return too_deep
    return decode(TrainJob, {"metadata": cached.metadata, "spec": spec, "status": status})
