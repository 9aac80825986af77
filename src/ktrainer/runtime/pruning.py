"""What an API server takes out of an object of ours before anybody gets to see it.

These are the fields that the schema of the CRD does not know, and whatever is null. Objects in files have met no API
server: what is judged and built of them is what they would be on a cluster.
"""

from __future__ import annotations

from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Final, Union, get_args, get_origin

from ktrainer.api.model import Model
from ktrainer.api.schema import Foreign, Written
from ktrainer.api.template import TemplateMeta
from ktrainer.api.trainingruntime import ClusterTrainingRuntime, TrainingRuntime
from ktrainer.api.trainjob import TrainJob
from ktrainer.kube.facts import ANYTHING, ObjectType, Shape
from ktrainer.kube.fields import Path
from ktrainer.runtime.jobsetfacts import jobset_facts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.kube.facts import Facts
    from ktrainer.kube.jsonvalue import JsonObject

MODELS: Final[dict[str, type[Model]]] = {
    model.__name__: model for model in (TrainJob, TrainingRuntime, ClusterTrainingRuntime)
}
"""Our kinds, by name."""

_META: Final = "meta.v1.ObjectMeta"
_OWN_META: Final = "trainer.v1alpha1.ObjectMeta"
"""The metadata of an object itself, of which there is more than a template may say."""


def prune(value: JsonObject, kind: str) -> list[str]:
    """Take out of an object, in place, what an API server would; return the paths of fields that nobody knows.

    Null stays in lists: there it is an error.
    """
    unknown: list[str] = []
    _prune(value, shape_of(kind), Path(), unknown)
    return unknown


def shape_of(kind: str) -> Shape:
    """The shape of an object of one of our kinds; `fields_of` knows what is in it."""
    return Shape(ref=_name_of(MODELS[kind]))


def _prune(value: Any, shape: Shape, path: Path, unknown: list[str]) -> None:
    if isinstance(value, list):
        for position, item in enumerate(value):
            _prune(item, shape.items or ANYTHING, path.index(position), unknown)
    elif isinstance(value, dict):
        known = fields_of(shape.ref) if shape.ref else None
        for key in list(value):
            item = value[key]
            if known is not None and key not in known:
                # Encoders in Go write this one wherever there is metadata, and nobody can help it.
                if item is not None or key != "creationTimestamp":
                    unknown.append(str(path.child(key)))
                del value[key]
            elif item is None:
                del value[key]
            else:
                _prune(item, (known[key] if known else shape.values) or ANYTHING, path.child(key), unknown)


def fields_of(type_name: str) -> dict[str, Shape]:
    """The fields of a type; of the metadata in a template only those that are for templates."""
    return _facts().type_of(_name_of(TemplateMeta) if type_name == _META else type_name).fields


@cache
def _facts() -> Facts:
    """The facts of Kubernetes, of JobSet and of our own kinds."""
    types = {_OWN_META: jobset_facts().type_of(_META)}
    for model in MODELS.values():
        _add(model, types)
    return jobset_facts().extended_with(types)


def _add(model: type[Model], types: dict[str, ObjectType]) -> None:
    fields = {
        field.alias or name: _shape_of(field.annotation, field.metadata, types)
        for name, field in model.model_fields.items()
    }
    types[_name_of(model)] = ObjectType(fields)


def _name_of(model: type[Model]) -> str:
    return f"trainer.v1alpha1.{model.__name__}"


def _shape_of(type_: Any, marks: Iterable[Any], types: dict[str, ObjectType]) -> Shape:
    """As much of the shape of an attribute as tells which fields are below it."""
    for mark in marks:
        if isinstance(mark, Foreign):
            return Shape(ref=mark.name)
        if mark is Written.OBJECT:
            return Shape(ref=_OWN_META)
    origin, arguments = get_origin(type_), [each for each in get_args(type_) if each is not NoneType]
    if origin is Annotated:
        return _shape_of(arguments[0], arguments[1:], types)
    if origin in (Union, UnionType):
        return _shape_of(arguments[0], (), types)
    if origin is list:
        return Shape(type="array", items=_shape_of(arguments[0], (), types))
    if origin is dict:
        return Shape(type="map", values=_shape_of(arguments[1], (), types))
    if isinstance(type_, type) and issubclass(type_, Model):
        _add(type_, types)
        return Shape(ref=_name_of(type_))
    return ANYTHING
