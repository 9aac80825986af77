"""Whether labels are selected by a label selector, as plain JSON has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrainer.kube.jsonvalue import JsonObject


def is_selected(labels: Mapping[str, str], selector: JsonObject) -> bool:
    """Whether all requirements hold; an operator that does not exist holds for nothing."""
    wanted = selector.get("matchLabels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(labels, requirement) for requirement in selector.get("matchExpressions") or ()
    )


def _holds(labels: Mapping[str, str], requirement: JsonObject) -> bool:
    value, values = labels.get(requirement.get("key", "")), requirement.get("values") or []
    match requirement.get("operator"):
        case "In":
            return value is not None and value in values
        case "NotIn":
            return value is None or value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
