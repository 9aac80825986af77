from enum import StrEnum
from typing import Annotated

from pydantic import Field

from crds.definitions import Definitions
from crds.models import ModelSchemas
from ktrainer.api.model import Model, ObjectMeta
from ktrainer.api.schema import (
    ATOMIC,
    FITS_INT32,
    IMMUTABLE,
    Count,
    Foreign,
    Instant,
    Int32,
    IntOrString,
    Keyed,
    Name,
    Rule,
    Unique,
)

EVEN = Rule("self % 2 == 0", "must be even")


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Item(Model):
    """An item."""

    name: Name
    """What it is called."""


class Parent(Model):
    """What all have."""

    colour: Annotated[Colour, Field(strict=False)] = Colour.BLUE
    """How it looks,
    in one word."""


class Child(Parent):
    """Something."""

    rules = (Rule("has(self.items)", "must have items"),)

    items: Annotated[list[Item], Field(min_length=1, max_length=3), Keyed("name")]
    """Its items."""
    words: Annotated[list[Annotated[str, Field(max_length=5)]], ATOMIC] | None = None
    """Its words."""
    tags: Annotated[list[str], Unique()] = Field(default_factory=list)
    """Its tags."""
    count: Annotated[Count, Field(le=9), EVEN, IMMUTABLE] | None = None
    """Its count."""
    size: Int32 = 5
    """Its size."""
    either: IntOrString | None = None
    """Its either."""
    at: Instant | None = None
    """Its time."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Its labels."""
    foreign: Annotated[dict[str, object], Foreign("Thing"), IMMUTABLE] | None = None
    """Its foreign part."""
    is_on: bool = False
    """Whether it is on."""


class Root(Model):
    """A kind."""

    api_version: str = "v1"
    """A version."""
    kind: str = "Root"
    """A kind."""
    metadata: ObjectMeta
    """Metadata."""
    spec: Child
    """A spec."""


def test_a_model_should_become_a_structural_schema() -> None:
    definitions = Definitions({"Thing": {"properties": {"a": {"type": "string", "description": "dropped"}}}})
    immutable = {"rule": "self == oldSelf", "message": "field is immutable"}
    assert ModelSchemas(definitions).root_of(Root) == {
        "type": "object",
        "description": "A kind.",
        "properties": {
            "apiVersion": {"type": "string", "description": "A version."},
            "kind": {"type": "string", "description": "A kind."},
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "description": "A spec.",
                "required": ["items"],
                "x-kubernetes-validations": [{"rule": "has(self.items)", "message": "must have items"}],
                "properties": {
                    "colour": {
                        "type": "string",
                        "description": "How it looks, in one word.",
                        "enum": ["red", "blue"],
                        "default": "blue",
                    },
                    "items": {
                        "type": "array",
                        "description": "Its items.",
                        "minItems": 1,
                        "maxItems": 3,
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "description": "An item.",
                            "required": ["name"],
                            "properties": {
                                "name": {
                                    "type": "string",
                                    "description": "What it is called.",
                                    "minLength": 1,
                                    "maxLength": 253,
                                }
                            },
                        },
                    },
                    "words": {
                        "type": "array",
                        "description": "Its words.",
                        "items": {"type": "string", "maxLength": 5},
                        "x-kubernetes-list-type": "atomic",
                    },
                    "tags": {
                        "type": "array",
                        "description": "Its tags.",
                        "items": {"type": "string"},
                        "x-kubernetes-list-type": "set",
                    },
                    "count": {
                        "type": "integer",
                        "description": "Its count.",
                        "format": "int32",
                        "minimum": 0,
                        "maximum": 9,
                        "x-kubernetes-validations": [{"rule": "self % 2 == 0", "message": "must be even"}, immutable],
                    },
                    "size": {"type": "integer", "description": "Its size.", "format": "int32", "default": 5},
                    "either": {
                        "description": "Its either.",
                        "anyOf": [{"type": "integer"}, {"type": "string"}],
                        "x-kubernetes-int-or-string": True,
                        "x-kubernetes-validations": [{"rule": FITS_INT32.cel, "message": FITS_INT32.message}],
                    },
                    "at": {"type": "string", "description": "Its time.", "format": "date-time"},
                    "labels": {
                        "type": "object",
                        "description": "Its labels.",
                        "additionalProperties": {"type": "string"},
                    },
                    "foreign": {
                        "type": "object",
                        "description": "Its foreign part.",
                        "properties": {"a": {"type": "string"}},
                        "x-kubernetes-validations": [immutable],
                    },
                    "isOn": {"type": "boolean", "description": "Whether it is on.", "default": False},
                },
            },
        },
    }
