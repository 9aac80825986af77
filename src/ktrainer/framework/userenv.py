"""Variables as a user writes them into a TrainJob, in the form that goes into a pod template.

Parity: `EnvVar` of pkg/apply in the original: a value is written even when it is empty, an API version of a field
reference is not, and a resource reference is written in full. Departs: a source that it does not know is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.kube.jsonvalue import copy_of
from ktrainer.kube.quantity import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.kube.jsonvalue import JsonObject


def env_of(entries: Iterable[JsonObject]) -> list[JsonObject]:
    """The variables of a TrainJob's trainer or initializer; shares nothing with them."""
    return [_entry(entry) for entry in entries]


def _entry(entry: JsonObject) -> JsonObject:
    source = entry.get("valueFrom")
    if source is None:
        return {"name": entry["name"], "value": entry.get("value") or ""}
    source = copy_of(source)
    if field := source.get("fieldRef"):
        source["fieldRef"] = {"fieldPath": field.get("fieldPath", "")}
    if resource := source.get("resourceFieldRef"):
        source["resourceFieldRef"] = {
            "containerName": resource.get("containerName") or "",
            "resource": resource.get("resource", ""),
            "divisor": canonical(resource.get("divisor") or "0"),
        }
    return {"name": entry["name"], "valueFrom": source}
