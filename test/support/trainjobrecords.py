"""TrainJobs and runtimes in the form that caches keep."""

from __future__ import annotations

from typing import Any

import orjson
from msgspec import Raw

from ktrainer.kube.meta import ObjectMeta
from ktrainer.machinery.cache.objects import CachedObject


def cached_trainjob(
    ref: Any = None, *, name: str = "job", suspend: Any = False, conditions: Any = (), state: str | None = None
) -> CachedObject:
    """A TrainJob in team-a; it refers to the ClusterTrainingRuntime torch unless told otherwise."""
    spec = {"runtimeRef": {"name": "torch"} if ref is None else ref, "suspend": suspend}
    status = {"conditions": conditions, "state": state}
    return CachedObject(
        metadata=ObjectMeta(name=name, namespace="team-a", uid=f"uid-{name}"),
        spec=Raw(orjson.dumps(spec)),
        status=Raw(orjson.dumps(status)),
    )
