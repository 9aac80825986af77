"""Brings the keys of objects into the order in which people write them."""

from __future__ import annotations

from typing import Any, Final

_FIRST: Final = (
    "apiVersion",
    "kind",
    "name",
    "generateName",
    "namespace",
    "metadata",
    "labels",
    "annotations",
    "type",
    "immutable",
    "replicas",
    "dependsOn",
    "image",
    "command",
    "args",
    "env",
    "envFrom",
)
_LAST: Final = ("containers", "volumes", "ownerReferences", "template", "spec", "replicatedJobs", "data", "stringData")
_RANKS: Final = {
    **{key: rank - len(_FIRST) for rank, key in enumerate(_FIRST)},
    **{key: rank + 1 for rank, key in enumerate(_LAST)},
}


def ordered(value: Any) -> Any:
    """The same with its keys ordered: what says what a thing is first, long parts last, the rest as it was."""
    if isinstance(value, dict):
        return {key: ordered(value[key]) for key in sorted(value, key=_rank)}
    if isinstance(value, list):
        return [ordered(item) for item in value]
    return value


def _rank(key: str) -> int:
    return _RANKS.get(key, 0)
