"""Whether plain JSON has the structure that the facts say, and its quantities in canonical form.

On a cluster an API server has checked all that by the schemas of the CRDs; files and snapshots come from anywhere. What
passes here, the rest of this package and the plugins may take for granted.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final

from ktrainer.kube import fields
from ktrainer.kube.facts import Shape
from ktrainer.kube.quantity import QuantityError, canonical
from ktrainer.runtime.jobsetfacts import jobset_facts
from ktrainer.runtime.zerovalues import LEFT_OUT, WRITTEN

if TYPE_CHECKING:
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
_EMPTY: Final = frozenset({"meta.v1.ObjectMeta", "core.v1.ResourceRequirements"})
"""Objects that say nothing where nothing is in them; of others, such as emptyDir, it matters that they are there."""
_INT32: Final = range(-(2**31), 2**31)
_INT64: Final = range(-(2**63), 2**63)


def settle(value: JsonObject, type_name: str, path: Path) -> ErrorList:
    """Check an object of a type and spell its quantities canonically, in place; return what does not fit.

    Zero values that mean nothing are left out, see `zerovalues`, and so are null and empty lists and maps: once such a
    one had something in it, a server-side apply that empties it makes it null, which a CRD refuses. Fields that the
    facts do not know stay: see `pruning`.
    """
    check = _Check(path)
    check.object(value, type_name, None)
    return check.errors


# Most quantities are among the same few hundred; 1, 1.0 and true must be told apart.
_canonical = lru_cache(4096, typed=True)(canonical)

_Step = type | Shape
"""What is to be done for a field: nothing but a look at its type, or more."""


@cache
def _steps_of(type_name: str) -> dict[str, _Step]:
    """What is to be done for the fields of a type, by name."""
    simple = {"string": str, "boolean": bool}
    return {key: simple.get(shape.type, shape) for key, shape in jobset_facts().type_of(type_name).fields.items()}


def _is_nothing(item: object, step: _Step) -> bool:
    """Whether a value that is null, zero or empty says no more than its absence, whatever the field."""
    if item is None:
        return True
    return isinstance(step, Shape) and (step.type in ("array", "map") or step.ref in _EMPTY)


class _Check:
    def __init__(self, root: Path) -> None:
        self.errors: ErrorList = []
        self._root = root
        self._facts = jobset_facts()

    def object(self, value: JsonObject, type_name: str, place: _Place) -> None:
        steps = _steps_of(type_name)
        required = self._facts.type_of(type_name).required
        empty: list[str] = []
        for key, item in value.items():
            step = steps.get(key)
            if step is str or step is bool:
                if item.__class__ is not step and item is not None:
                    self._wrong((place, key), item, "string" if step is str else "boolean")
            elif item is not None and isinstance(step, Shape):
                self._item(value, key, item, step, (place, key))
            if not item and step is not None and key not in required and _is_nothing(item, step):
                empty.append(key)
        for key in empty:
            del value[key]
        for key in required:
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
        elif item.__class__ is int:
            self._check_range(item, shape, place)
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
        return isinstance(item, _TYPES[type_])

    def _check_range(self, item: int, shape: Shape, place: _Place) -> None:
        allowed = _INT32 if shape.format == "int32" or shape.type == "int-or-string" else _INT64
        if item not in allowed:
            bound = f"less than or equal to {allowed[-1]}" if item > 0 else f"greater than or equal to {allowed[0]}"
            self.errors.append(fields.invalid(self._path(place), item, f"must be {bound}"))

    def _quantity(self, owner: Any, key: Any, item: Any, place: _Place) -> None:
        if not isinstance(item, str | int | float):
            self._wrong(place, item, "quantity")
            return
        try:
            owner[key] = _canonical(item)
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
