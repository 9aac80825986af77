"""Whether labels are selected by a label selector, as plain JSON has it, and what is wrong with one.

The schema of a selector leaves much open, and only who uses it can tell: a requirement that nothing can meet, or that
everything does, would shut everybody out, or let everybody in.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ktrainer.kube import fields

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ktrainer.kube.fields import ErrorList, FieldError, Path
    from ktrainer.kube.jsonvalue import JsonObject

_NAME: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DOMAIN: Final = r"(?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY: Final = re.compile(f"({_DOMAIN}/)?{_NAME}", re.ASCII)
_VALUE: Final = re.compile(f"({_NAME})?", re.ASCII)

_WITH_VALUES: Final = ("In", "NotIn")
_WITHOUT_VALUES: Final = ("Exists", "DoesNotExist")


def validate_selector(selector: JsonObject, path: Path) -> ErrorList:
    """Refuse what Kubernetes takes for no selector."""
    errors: ErrorList = []
    for key, value in (selector.get("matchLabels") or {}).items():
        place = path.child("matchLabels")
        errors += [*_check_key(key, place), *_check_value(value, place.key(key))]
    for position, requirement in enumerate(selector.get("matchExpressions") or ()):
        errors += _check_requirement(requirement, path.child("matchExpressions").index(position))
    return errors


def _check_requirement(requirement: JsonObject, path: Path) -> Iterator[FieldError]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or []
    yield from _check_key(requirement.get("key", ""), path.child("key"))
    if operator not in (*_WITH_VALUES, *_WITHOUT_VALUES):
        yield fields.not_supported(path.child("operator"), operator, (*_WITH_VALUES, *_WITHOUT_VALUES))
    elif operator in _WITH_VALUES and not values:
        yield fields.required(path.child("values"), f"the operator {operator} needs some")
    elif operator in _WITHOUT_VALUES and values:
        yield fields.forbidden(path.child("values"), f"the operator {operator} takes none")
    for position, value in enumerate(values):
        yield from _check_value(value, path.child("values").index(position))


def _check_key(key: str, path: Path) -> Iterator[FieldError]:
    if not _KEY.fullmatch(key):
        yield fields.invalid(path, key, "must be the key of a label, such as team or acme.io/team")


def _check_value(value: str, path: Path) -> Iterator[FieldError]:
    if not _VALUE.fullmatch(value):
        yield fields.invalid(path, value, "must be the value of a label: up to 63 letters, digits, and inner - _ .")


def is_selected(labels: Mapping[str, str], selector: JsonObject) -> bool:
    """Whether all requirements hold; an operator that does not exist, or lacks its values, holds for nothing."""
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
            return bool(values) and value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return False
