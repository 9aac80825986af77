"""Whether plain JSON has the structure that the facts say, and its quantities in canonical form.

On a cluster an API server has checked all that by the schemas of the CRDs; files and snapshots come from anywhere. What
passes here, the rest of this package and the plugins may take for granted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ktrainer.kube import fields
from ktrainer.kube.quantity import QuantityError, canonical
from ktrainer.runtime.jobsetfacts import jobset_facts
from ktrainer.runtime.zerovalues import LEFT_OUT, WRITTEN

if TYPE_CHECKING:
    from ktrainer.kube.facts import Shape
    from ktrainer.kube.fields import ErrorList, Path
    from ktrainer.kube.jsonvalue import JsonObject

_Place = tuple[Any, str | int] | None
"""Where a value is: the place of what it is in, and its key there. Spelled only when there is something to say."""

_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "map": (dict,),
    "object": (dict,),
    "int-or-string": (int, str),
}
_INT64: Final = range(-(2**63), 2**63)


def settle(value: JsonObject, type_name: str, path: Path, unknown: list[str] | None = None) -> ErrorList:
    """Check an object of a type and spell its quantities canonically, in place; return what does not fit.

    Zero values that mean nothing are left out, see `zerovalues`. Fields that the facts do not know stay, and their
    paths are added to `unknown`.
    """
    check = _Check(path, unknown)
    check.object(value, type_name, None)
    return check.errors


class _Check:
    def __init__(self, root: Path, unknown: list[str] | None) -> None:
        self.errors: ErrorList = []
        self._root = root
        self._unknown = unknown
        self._facts = jobset_facts()

    def object(self, value: JsonObject, type_name: str, place: _Place) -> None:
        type_ = self._facts.type_of(type_name)
        shapes = type_.fields
        for key, item in value.items():
            shape = shapes.get(key)
            if shape is None:
                if self._unknown is not None:
                    self._unknown.append(str(self._path((place, key))))
            elif item is not None:
                self._item(value, key, item, shape, (place, key))
        for key in type_.required:
            if value.get(key) is None:
                self.errors.append(fields.required(self._path((place, key))))
        if type_name in LEFT_OUT:
            for key in LEFT_OUT[type_name] & value.keys():
                if not value[key]:
                    del value[key]
        if type_name in WRITTEN:
            value.setdefault(*WRITTEN[type_name])

    def _item(self, owner: Any, key: Any, item: Any, shape: Shape, place: _Place) -> None:
        """Check one value, which `owner` holds under `key`."""
        if shape.ref:
            if isinstance(item, dict):
                self.object(item, shape.ref, place)
            else:
                self._wrong(place, item, "object")
        elif shape.type == "quantity":
            self._quantity(owner, key, item, place)
        elif not self._fits(item, shape.type):
            self._wrong(place, item, shape.type)
        elif shape.items:
            for index, inner in enumerate(item):
                self._item(item, index, inner, shape.items, (place, index))
        elif shape.values:
            for name, inner in item.items():
                self._item(item, name, inner, shape.values, (place, name))

    def _fits(self, item: Any, type_: str) -> bool:
        if not type_:
            return True
        if isinstance(item, bool):
            return type_ == "boolean"
        return isinstance(item, _TYPES[type_]) and (not isinstance(item, int) or item in _INT64)

    def _quantity(self, owner: Any, key: Any, item: Any, place: _Place) -> None:
        if not isinstance(item, str | int | float):
            self._wrong(place, item, "quantity")
            return
        try:
            owner[key] = canonical(item)
        except QuantityError as error:
            self.errors.append(fields.invalid(self._path(place), item, str(error)))

    def _wrong(self, place: _Place, item: Any, wanted: str) -> None:
        shown = "object" if isinstance(item, dict) else "array" if isinstance(item, list) else item
        name = {"map": "object", "int-or-string": "integer or string"}.get(wanted, wanted)
        self.errors.append(fields.invalid(self._path(place), shown, f"must be of type {name}"))

    def _path(self, place: _Place) -> Path:
        if place is None:
            return self._root
        parent, key = place
        path = self._path(parent)
        return path.index(key) if isinstance(key, int) else path.child(key)
