"""JSON as plain Python values: what dict, list, str, int, float, bool and None need beyond what Python gives them."""

from __future__ import annotations

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]


def copy_of(value: Any) -> Any:
    """A fresh copy, down to the leaves. Faster than copy.deepcopy; where bytes are at hand, parse them anew instead."""
    if isinstance(value, dict):
        return {key: copy_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copy_of(item) for item in value]
    return value


def is_deeper_than(value: Any, levels: int) -> bool:
    """Whether more than so many objects and arrays are nested within each other. Without recursion."""
    layer = [value]
    for _ in range(levels + 1):
        nested = [each for each in layer if isinstance(each, dict | list)]
        if not nested:
            return False
        layer = [item for each in nested for item in (each.values() if isinstance(each, dict) else each)]
    return True


def are_same(value: Any, other: Any) -> bool:
    """Whether two values are the same JSON: `==` takes true for 1 and 1 for 1.0, which differ to an API server."""
    if type(value) is not type(other) or value != other:
        return False
    if isinstance(value, dict):
        return all(are_same(item, other[key]) for key, item in value.items())
    if isinstance(value, list):
        return all(map(are_same, value, other))
    return True
