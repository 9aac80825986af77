"""Structural schemas of our own models, with the docstrings of classes and attributes as descriptions."""

from __future__ import annotations

from enum import Enum
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

from crds.docstrings import attribute_docstrings_of, on_one_line
from ktrainer.api.model import Model
from ktrainer.api.schema import INT32_MAX, INT32_MIN, INT64_MAX, Foreign, Keyed, Marked, Rule, Unique, Written

if TYPE_CHECKING:
    from crds.definitions import Definitions, Schema

_SCALARS: Final = {str: "string", int: "integer", bool: "boolean"}
_WRITTEN: Final[dict[Written, Schema]] = {
    Written.INT_OR_STRING: {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
    Written.DATE_TIME: {"type": "string", "format": "date-time"},
    Written.OBJECT: {"type": "object"},
}
# Bounds that a format states already.
_OF_FORMAT: Final = frozenset({INT32_MIN, INT32_MAX, INT64_MAX})


class ModelSchemas:
    """Builds the schemas of models; the parts that are not ours come from the definitions."""

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions

    def root_of(self, model: type[Model]) -> Schema:
        """The schema of one of our kinds."""
        schema = self._object(model)
        # An API server checks these by itself, and lets nobody else say much about them.
        for name in ("apiVersion", "kind"):
            schema["properties"][name].pop("default")
        del schema["properties"]["metadata"]["description"]
        # An object without a spec has always been accepted.
        del schema["required"]
        return schema

    def _object(self, model: type[Model]) -> Schema:
        schema: Schema = {"type": "object", "description": on_one_line(model.__doc__)}
        descriptions = attribute_docstrings_of(model)
        properties = {field.alias: self._field(field, descriptions[name]) for name, field in model.model_fields.items()}
        required = [field.alias for field in model.model_fields.values() if field.is_required()]
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        for rule in model.rules:
            _add_rule(schema, rule)
        return schema

    def _field(self, field: FieldInfo, description: str) -> Schema:
        # It stands first, for readers of the file, and before that of the type.
        schema = {"description": "", **self._type(field.annotation)} | {"description": description}
        for mark in field.metadata:
            schema = self._marked(schema, mark)
        if isinstance(field.default, str | int | Enum) and not field.is_required():
            schema["default"] = field.default.value if isinstance(field.default, Enum) else field.default
        return schema

    def _type(self, type_: Any) -> Schema:
        origin, arguments = get_origin(type_), get_args(type_)
        if origin is Annotated:
            schema = self._type(arguments[0])
            for mark in arguments[1:]:
                schema = self._marked(schema, mark)
            return schema
        if origin in (Union, UnionType):
            alternatives = [argument for argument in arguments if argument is not NoneType]
            # Of several, a mark tells the schema.
            return self._type(alternatives[0]) if len(alternatives) == 1 else {}
        if origin is list:
            return {"type": "array", "items": self._type(arguments[0])}
        if origin is dict:
            return {"type": "object", "additionalProperties": self._type(arguments[1])}
        if origin is Literal:
            return {"type": "string"}
        return self._class(type_)

    def _class(self, type_: Any) -> Schema:
        if type_ in _SCALARS:
            return {"type": _SCALARS[type_]}
        if isinstance(type_, type) and issubclass(type_, Enum):
            return {"type": "string", "enum": [member.value for member in type_]}
        if isinstance(type_, type) and issubclass(type_, Model):
            return self._object(type_)
        # Of anything else, a mark tells the schema.
        return {}

    def _marked(self, schema: Schema, mark: Any) -> Schema:
        match mark:
            case FieldInfo(metadata=inner):
                for each in inner:
                    schema = self._marked(schema, each)
            case Rule():
                _add_rule(schema, mark)
            case Marked(name, value):
                schema[name] = value
            case Keyed(key):
                schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
            case Unique():
                schema["x-kubernetes-list-type"] = "set"
            case Written():
                schema = schema | _WRITTEN[mark]
            case Foreign(name):
                # In place of the map of anything that it is to Python.
                schema = {**_description(schema), **self._definitions.schema_of(name)}
            case annotated_types.Ge(bound) if bound not in _OF_FORMAT:
                schema["minimum"] = bound
            case annotated_types.Le(bound) if bound not in _OF_FORMAT:
                schema["maximum"] = bound
            case annotated_types.MinLen(length):
                schema["minItems" if schema["type"] == "array" else "minLength"] = length
            case annotated_types.MaxLen(length):
                schema["maxItems" if schema["type"] == "array" else "maxLength"] = length
        return schema


def _add_rule(schema: Schema, rule: Rule) -> None:
    schema.setdefault("x-kubernetes-validations", []).append({"rule": rule.cel, "message": rule.message})


def _description(schema: Schema) -> Schema:
    return {key: schema[key] for key in ("description",) if key in schema}
