"""From JSON values to our models and back. What does not fit comes as field errors, in the words of Kubernetes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from ktrainer.kube import fields
from ktrainer.kube.fields import ErrorList, FieldError, Path

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_core import ErrorDetails

    from ktrainer.kube.jsonvalue import JsonObject

M = TypeVar("M", bound=BaseModel)


def decode(model: type[M], value: object, *, strict: bool = False) -> M | ErrorList:
    """Read a model from what a JSON or YAML parser gave; a non-empty list of field errors where it does not fit.

    An unknown field is kept, and with `strict` refused. Nothing of `value` is changed; embedded parts that stay plain
    JSON are shared with it.
    """
    try:
        return model.model_validate(value, by_alias=True, by_name=False, extra="forbid" if strict else None)
    except ValidationError as error:
        return [_field_error(details) for details in error.errors(include_url=False)]


def encode(model: BaseModel) -> JsonObject:
    """Write a model as JSON values: what was given, read or set, and the kind of an object; no defaults."""
    value = model.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)
    if "api_version" not in type(model).model_fields:
        return value
    return {**model.model_dump(by_alias=True, include={"api_version", "kind"}), **value}


def _field_error(details: ErrorDetails) -> FieldError:
    path, value, context = _path(details["loc"]), _shown(details["input"]), details.get("ctx", {})
    describe = _DESCRIBED.get(details["type"])
    if describe is not None:
        return describe(path, value, context)
    return fields.invalid(path, value, details["msg"])


def _shown(value: object) -> object:
    # Repeating a whole object would bury the message; an API server names its type instead.
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else value


def _path(steps: tuple[int | str, ...]) -> Path:
    path = Path()
    for step in steps:
        path = path.index(step) if isinstance(step, int) else path.child(step)
    return path


def _wrong_type(name: str) -> Callable[[Path, object, dict[str, Any]], FieldError]:
    return lambda path, value, context: fields.invalid(path, value, f"must be of type {name}")


def _unsupported(path: Path, value: object, context: dict[str, Any]) -> FieldError:
    # Pydantic tells the values only as text: 'A', 'B' or 'C'.
    return fields.not_supported(path, value, re.findall("'([^']*)'", context["expected"]))


_DESCRIBED: Final[dict[str, Callable[[Path, Any, dict[str, Any]], FieldError]]] = {
    "missing": lambda path, value, context: fields.required(path),
    "extra_forbidden": lambda path, value, context: fields.forbidden(path, "unknown field"),
    "duplicate": lambda path, value, context: fields.duplicate(path, value),
    "enum": _unsupported,
    "literal_error": _unsupported,
    "string_too_long": lambda path, value, context: fields.too_long(path, context["max_length"]),
    "string_too_short": lambda path, value, context: fields.invalid(
        path, value, f"must have at least {fields.counted(context['min_length'], 'character')}"
    ),
    "too_long": lambda path, value, context: fields.too_many(path, context["actual_length"], context["max_length"]),
    "too_short": lambda path, value, context: fields.invalid(
        path, value, f"must have at least {fields.counted(context['min_length'], 'item')}"
    ),
    "greater_than_equal": lambda path, value, context: fields.invalid(
        path, value, f"must be greater than or equal to {int(context['ge'])}"
    ),
    "less_than_equal": lambda path, value, context: fields.invalid(
        path, value, f"must be less than or equal to {int(context['le'])}"
    ),
    "string_type": _wrong_type("string"),
    "int_type": _wrong_type("integer"),
    "float_type": _wrong_type("number"),
    "bool_type": _wrong_type("boolean"),
    "list_type": _wrong_type("array"),
    "dict_type": _wrong_type("object"),
    "model_type": _wrong_type("object"),
}
