"""Looking objects up by something other than their key.

An index is exact: it knows the values that its function gives for the objects that are there now, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Generic, TypeAlias

import structlog

from ktrainer.machinery.cache.objects import T

if TYPE_CHECKING:
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.once import Once

_log = structlog.get_logger(__name__)

IndexFunction: TypeAlias = Callable[[T], Iterable[str]]
"""The values to find an object by. Must be pure: what it gives for an object decides what is removed later."""


class Index(Generic[T]):
    """One index of one store. An object whose function raises is not in it."""

    def __init__(self, name: str, function: IndexFunction[T], once: Once) -> None:
        self.name = name
        self.function = function
        self._once = once
        self._keys: dict[tuple[str, str], dict[ObjectKey, None]] = {}
        """Keys by namespace and value, and once more with an empty namespace for all of them; in order of arrival."""

    def change(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        """Put `new` in the place of `old`, the very object that was put in before; None stands for no object."""
        former = () if old is None else self._places_of(key, old)
        future = () if new is None else self._places_of(key, new)
        if former == future:
            return
        for place in former:
            keys = self._keys.get(place, {})
            keys.pop(key, None)
            if not keys:
                self._keys.pop(place, None)
        for place in future:
            self._keys.setdefault(place, {})[key] = None

    def keys(self, value: str, namespace: str = "") -> tuple[ObjectKey, ...]:
        """Return the keys of the objects that have the value, of all namespaces unless one is given."""
        return tuple(self._keys.get((namespace, value), ()))

    def count(self, value: str) -> int:
        """How many objects have the value."""
        return len(self._keys.get(("", value), ()))

    def _places_of(self, key: ObjectKey, obj: T) -> tuple[tuple[str, str], ...]:
        try:
            values = dict.fromkeys(self.function(obj))
        except Exception as error:  # the function is not ours, and one object must not break the store
            if self._once.is_new((self.name, key, type(error))):
                _log.exception("index function failed; the object is not in the index", index=self.name, key=str(key))
            return ()
        namespaces = ("", key.namespace) if key.namespace else ("",)
        return tuple((namespace, value) for value in values for namespace in namespaces)
