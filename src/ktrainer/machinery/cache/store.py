"""The objects of one view as last heard of, with indexes.

Only the informer's processor writes. Every method is a plain function and therefore atomic: readers see the state
before or after a change, indexes included, and never one in between. What they get is shared with
others and must not be changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from ktrainer.kube import resourceversion
from ktrainer.machinery.cache.index import Index
from ktrainer.machinery.cache.objects import T
from ktrainer.machinery.cache.once import Once

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.index import IndexFunction


class Contents(Generic[T]):
    """Objects with their indexes: those of a store, or those that will replace them when they are complete."""

    def __init__(self, indexers: Mapping[str, IndexFunction[T]], once: Once) -> None:
        self.objects: dict[ObjectKey, T] = {}
        self._once = once
        self._indexes = {name: Index(name, function, once) for name, function in indexers.items()}

    def put(self, key: ObjectKey, obj: T) -> T | None:
        """Add or exchange an object; return the one that was there."""
        old = self.objects.get(key)
        self.objects[key] = obj
        for index in self._indexes.values():
            index.change(key, old, obj)
        return old

    def remove(self, key: ObjectKey) -> T | None:
        """Remove an object; return it if it was there."""
        old = self.objects.pop(key, None)
        for index in self._indexes.values():
            index.change(key, old, None)
        return old

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Index all objects by a further function; a name that is taken is left alone."""
        if name in self._indexes:
            return
        index = self._indexes[name] = Index(name, function, self._once)
        for key, obj in self.objects.items():
            index.change(key, None, obj)

    def indexed_keys(self, name: str, value: str, namespace: str) -> tuple[ObjectKey, ...]:
        """Return the keys that an index holds for a value; raises KeyError when there is no such index."""
        return self._indexes[name].keys(value, namespace)

    def indexed_count(self, name: str, value: str) -> int:
        """Return how many keys an index holds for a value; raises KeyError when there is no such index."""
        return self._indexes[name].count(value)


class Store(Generic[T]):
    """The current objects of a view by key."""

    def __init__(self, indexers: Mapping[str, IndexFunction[T]]) -> None:
        self._indexers = dict(indexers)
        self._once = Once()
        self._contents = Contents(self._indexers, self._once)
        self._resource_version = ""

    @property
    def resource_version(self) -> str:
        """The newest version of which all changes are in the store, bookmarks included; empty at first.

        Goes back only when everything was listed anew by quorum, as after the server's database was restored.
        """
        return self._resource_version

    def __len__(self) -> int:
        return len(self._contents.objects)

    def get(self, key: ObjectKey) -> T | None:
        """Return an object, or None where there is none."""
        return self._contents.objects.get(key)

    def list(self, namespace: str = "") -> tuple[T, ...]:
        """Return all objects, or those of a namespace."""
        objects = self._contents.objects
        if not namespace:
            return tuple(objects.values())
        return tuple(obj for key, obj in objects.items() if key.namespace == namespace)

    def keys(self) -> tuple[ObjectKey, ...]:
        """Return the keys of all objects."""
        return tuple(self._contents.objects)

    def by_index(self, name: str, value: str, namespace: str = "") -> tuple[T, ...]:
        """Return the objects that an index holds for a value; raises KeyError when there is no such index."""
        objects = self._contents.objects
        return tuple(objects[key] for key in self._contents.indexed_keys(name, value, namespace))

    def count_by_index(self, name: str, value: str) -> int:
        """Return how many objects an index holds for a value; raises KeyError when there is no such index."""
        return self._contents.indexed_count(name, value)

    def add_index(self, name: str, function: IndexFunction[T]) -> None:
        """Add an index, at any time; raises ValueError when the name stands for another function already."""
        if self._indexers.setdefault(name, function) is not function:
            raise ValueError(f"there is already another index named {name}")
        self._contents.add_index(name, function)

    def put(self, key: ObjectKey, obj: T) -> T | None:
        """Add or exchange an object; return the one that was there."""
        self.advance(obj.metadata.resource_version)
        return self._contents.put(key, obj)

    def remove(self, key: ObjectKey) -> T | None:
        """Remove an object; return it if it was there."""
        return self._contents.remove(key)

    def advance(self, resource_version: str) -> None:
        """Note that all changes up to a version are in the store; an older one than before changes nothing."""
        self._resource_version = resourceversion.newest(self._resource_version, resource_version)

    def prepare(self) -> Contents[T]:
        """Return empty contents to be filled, as slowly as need be, and then given to `replace`."""
        return Contents(self._indexers, self._once)

    def replace(self, contents: Contents[T], resource_version: str) -> Mapping[ObjectKey, T]:
        """Exchange everything at once; return what was there before."""
        for name, function in self._indexers.items():
            contents.add_index(name, function)
        former, self._contents = self._contents.objects, contents
        self._resource_version = resource_version
        return former
