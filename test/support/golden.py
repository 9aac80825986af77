"""Compares what is built with golden cases, which were taken from the original's output.

Empty values and our own label are dropped; order counts, except in lists whose order means nothing. Generated values
are compared by key.
"""

from __future__ import annotations

from typing import Any

from ktrainer.api.labels import TRAINJOB_NAME

J = dict[str, Any]

_UNORDERED = {
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "schedulingGates": "name",
}


def normal(objects: list[J]) -> dict[tuple[str, str], Any]:
    """The objects by kind and name, in the form in which they are compared; snapshots are left out."""
    named = {(each["kind"], each["metadata"]["name"]): _normal(_shown(each)) for each in objects}
    return {key: each for key, each in named.items() if not key[1].endswith("-runtime-snapshot")}


def _shown(value: J) -> J:
    if value["kind"] == "Secret":
        data = {**value.get("stringData", {}), **value.get("data", {})}
        rest = {key: item for key, item in value.items() if key != "stringData"}
        return {**rest, "data": dict.fromkeys(data, "<generated>")}
    if value["kind"] == "ConfigMap" and "flux" in value["metadata"]["name"]:
        return {**value, "data": dict.fromkeys(value["data"], "<script>")}
    return value


def _normal(value: Any, key: str = "") -> Any:
    if isinstance(value, dict):
        items = {name: _normal(item, name) for name, item in value.items() if name != TRAINJOB_NAME}
        return {name: item for name, item in items.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        listed = [_normal(item) for item in value]
        return sorted(listed, key=lambda item: str(item[_UNORDERED[key]])) if key in _UNORDERED else listed
    return value
