"""Whether labels are selected by a label selector, as plain JSON has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.kube import fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrainer.kube.fields import ErrorList, Path
    from ktrainer.kube.jsonvalue import JsonObject

_OF_VALUES: Final = ("In", "NotIn")
_OF_KEYS: Final = ("Exists", "DoesNotExist")


def validate_selector(selector: JsonObject, path: Path) -> ErrorList:
    """Find requirements that hold for nothing, whatever the labels, or say more than they mean."""
    errors: ErrorList = []
    for position, requirement in enumerate(selector.get("matchExpressions") or ()):
        place, operator = path.child("matchExpressions").index(position), requirement["operator"]
        if operator not in (*_OF_VALUES, *_OF_KEYS):
            errors.append(fields.not_supported(place.child("operator"), operator, (*_OF_VALUES, *_OF_KEYS)))
        elif operator in _OF_VALUES and not requirement.get("values"):
            errors.append(fields.required(place.child("values"), f"the operator is {operator}"))
        elif operator in _OF_KEYS and requirement.get("values"):
            errors.append(fields.forbidden(place.child("values"), f"the operator is {operator}"))
    return errors


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
