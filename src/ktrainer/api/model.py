"""The base of our models: camelCase on the wire, snake_case in Python, strict types, nothing ever lost.

A model is frozen: what was read is never written to; `model_copy(update=…)` makes a changed one. A field that a newer
schema knows and we do not is kept and written back (decoding in strict mode refuses it instead). Models are made by
`ktrainer.api.decoding`, or in Python by the names of their attributes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import msgspec
from pydantic import BaseModel, ConfigDict, PlainSerializer, PlainValidator
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from ktrainer.api.schema import Foreign, Rule, Written
from ktrainer.kube.conditions import Condition as _Condition
from ktrainer.kube.meta import ObjectMeta as _ObjectMeta

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


class Model(BaseModel):
    """An object with fields of ours."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        strict=True,
        frozen=True,
        extra="allow",
        defer_build=True,
    )

    rules: ClassVar[tuple[Rule, ...]] = ()
    """What must hold between the fields of this object."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        for rule in cls.rules:
            schema = rule.checked(schema)
        return schema


T = TypeVar("T")
_STEPS = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_EXPECTED = re.compile(r"Expected `(\w+)")
_NAMES = {"str": "string", "int": "integer", "bool": "boolean"}


def _converter(type_: type[T]) -> PlainValidator:
    def convert(value: object) -> T:
        if isinstance(value, type_):
            return value
        try:
            return msgspec.convert(value, type_)
        except msgspec.ValidationError as error:
            raise _located(error, value) from None

    return PlainValidator(convert)


def _located(error: msgspec.ValidationError, value: Any) -> ValidationError:
    """The same error, with the path out of its text where pydantic has it, and the value that it is about."""
    reason, _, path = str(error).partition(" - at `$")
    if expected := _EXPECTED.match(reason):
        reason = f"must be of type {_NAMES.get(expected[1], expected[1])}"
    steps: list[int | str] = []
    for name, index in _STEPS.findall(path):
        if index == "...":
            # Which key of a map is not said; all maps of these types are of strings.
            name = next(key for key, item in value.items() if not isinstance(item, str))
        steps.append(int(index) if index.isdigit() else name)
        value = value[steps[-1]]
    problem = PydanticCustomError("struct", "{reason}", {"reason": reason})
    return ValidationError.from_exception_data("", [InitErrorDetails(type=problem, loc=tuple(steps), input=value)])


ObjectMeta = Annotated[
    _ObjectMeta,
    _converter(_ObjectMeta),
    PlainSerializer(msgspec.to_builtins),
    Written.OBJECT,
]
"""The metadata of an object of ours, in the form that caches keep; fields that no controller reads are left out."""

Condition = Annotated[
    _Condition,
    _converter(_Condition),
    PlainSerializer(msgspec.to_builtins),
    Foreign("meta.v1.Condition"),
]
"""A condition of a status."""
