"""Marks on the fields of our models: what a CRD says of them beyond what pydantic knows.

hack/gen_crds.py reads the marks. A rule that looks at one object alone is also checked in Python, so that it
holds where no API server has seen the object (`ktrainer validate`) and under the CRDs of another version.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from pydantic import Field, PlainValidator
from pydantic.alias_generators import to_snake
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError, core_schema

from ktrainer.kube.timestamp import parse_time

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class Rule:
    """A CEL rule on a value."""

    cel: str
    message: str
    check: Callable[[Any], bool] | None = None
    """The same in Python; none for a rule on transitions, which only an API server can judge."""

    def checked(self, schema: CoreSchema) -> CoreSchema:
        """The schema of a value that must also pass the check."""
        if self.check is None:
            return schema
        return core_schema.no_info_after_validator_function(self._judge, schema)

    def _judge(self, value: Any) -> Any:
        if self.check is not None and not self.check(value):
            raise PydanticCustomError("rule", "{message}", {"message": self.message})
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return self.checked(handler(source))


IMMUTABLE: Final = Rule("self == oldSelf", "field is immutable")


@dataclass(frozen=True, slots=True)
class Marked:
    """Something that goes into the schema as it is."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Foreign:
    """The value is of a type that is not ours; its schema stands under this name among the definitions."""

    name: str


class Written(Enum):
    """How a value is written, where its type in Python does not tell."""

    INT_OR_STRING = auto()
    DATE_TIME = auto()
    OBJECT = auto()
    """Any object: an API server knows what may be in it."""


ATOMIC: Final = Marked("x-kubernetes-list-type", "atomic")
"""A list that is replaced as a whole."""
ATOMIC_MAP: Final = Marked("x-kubernetes-map-type", "atomic")
"""An object that is replaced as a whole."""
NOT_EMPTY: Final = Marked("minProperties", 1)
"""An object with at least one field."""


@dataclass(frozen=True, slots=True)
class Keyed:
    """A list whose items are known by one of their fields, and merge one by one."""

    key: str
    checked: bool = True
    """Whether a key that comes twice is an error here, too, and not to API servers alone."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        if not self.checked:
            return handler(source)
        attribute = to_snake(self.key)

        def key_of(item: Any) -> object:
            return item.get(self.key, "") if isinstance(item, dict) else getattr(item, attribute)

        return _unique(handler(source), key_of)


MOUNTS: Final = Keyed("name", checked=False)
"""Volume mounts: the CRD of the original knows them by their volume, but they merge by their path."""


@dataclass(frozen=True, slots=True)
class Unique:
    """A list of scalars that is a set."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _unique(handler(source), lambda item: item)


def _unique(schema: CoreSchema, key_of: Callable[[Any], object]) -> CoreSchema:
    def judge(items: list[Any]) -> list[Any]:
        seen = set()
        for position, item in enumerate(items):
            key = key_of(item)
            if isinstance(key, dict | list):
                # In a part that stays plain JSON; what knows its structure will refuse it.
                continue
            if key in seen:
                # Raised by hand, since only this form can name the item.
                error = PydanticCustomError("duplicate", "duplicate")
                raise ValidationError.from_exception_data(
                    "", [InitErrorDetails(type=error, loc=(position,), input=key)]
                )
            seen.add(key)
        return items

    return core_schema.no_info_after_validator_function(judge, schema)


INT32_MIN: Final = -(2**31)
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
INT32: Final = Marked("format", "int32")
INT64: Final = Marked("format", "int64")

# The bounds of a format are left out of the schema: the format says them.
Int32: TypeAlias = Annotated[int, Field(ge=INT32_MIN, le=INT32_MAX), INT32]
Count: TypeAlias = Annotated[int, Field(ge=0, le=INT32_MAX), INT32]
"""Zero or more."""
Positive: TypeAlias = Annotated[int, Field(ge=1, le=INT32_MAX), INT32]
"""One or more."""

Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=253)]
"""The name of something: never empty."""


def _int_or_string(value: object) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise PydanticCustomError("int_or_string_type", "must be of type integer or string")
    return value


FITS_INT32: Final = Rule(
    f"type(self) == int ? self >= {INT32_MIN} && self <= {INT32_MAX} : true",
    f"a number must be between {INT32_MIN} and {INT32_MAX}",
    lambda value: isinstance(value, str) or INT32_MIN <= value <= INT32_MAX,
)
"""What the format says elsewhere: a value of one of two types has none."""

IntOrString: TypeAlias = Annotated[
    int | str,
    PlainValidator(_int_or_string),
    Written.INT_OR_STRING,
    FITS_INT32,
]


def _instant(value: object) -> str:
    if not isinstance(value, str):
        raise PydanticCustomError("string_type", "must be a string")
    try:
        parse_time(value)
    except ValueError:
        raise PydanticCustomError("date_time", "must be a time in the form of RFC 3339, such as 2026-01-02T03:04:05Z")
    return value


Instant: TypeAlias = Annotated[str, PlainValidator(_instant), Written.DATE_TIME]
"""A time as RFC 3339 spells it; it stays a string, so that nothing of it is lost."""
