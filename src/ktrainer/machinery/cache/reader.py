"""Reading a cache: only what was asked for in advance, and only when it is complete.

CacheError
├── NotCached     no informer was registered for what is asked: nobody gets a watch by accident
├── NotStarted    the cache does not run yet
└── NotSynced     the first state is not complete, so that what is missing may well exist
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

from ktrainer.machinery.cache.objects import T

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.store import Store


class CacheError(Exception):
    """The cache cannot answer."""


class NotCached(CacheError):
    """No informer was registered for what is asked."""


class NotStarted(CacheError):
    """The cache does not run yet."""


class NotSynced(CacheError):
    """The first state is not complete yet."""


class Reader(Generic[T]):
    """Reads one view. Every method raises NotStarted or NotSynced instead of giving a wrong answer.

    What it returns is shared with others and must not be changed. An object that is not there need not be missing on
    the server: it may be newer than the cache, or not match the view's selectors.
    """

    def __init__(self, store: Store[T], check: Callable[[], None]) -> None:
        """`check` raises CacheError while the store is not to be read."""
        self._store = store
        self._check = check

    def get(self, key: ObjectKey) -> T | None:
        """Return an object, or None where there is none."""
        self._check()
        return self._store.get(key)

    def list(self, namespace: str = "") -> tuple[T, ...]:
        """Return all objects, or those of a namespace."""
        self._check()
        return self._store.list(namespace)

    def keys(self) -> tuple[ObjectKey, ...]:
        """Return the keys of all objects."""
        self._check()
        return self._store.keys()

    def by_index(self, name: str, value: str, namespace: str = "") -> tuple[T, ...]:
        """Return the objects that an index holds for a value; raises KeyError when there is no such index."""
        self._check()
        return self._store.by_index(name, value, namespace)

    def count_by_index(self, name: str, value: str) -> int:
        """Return how many objects an index holds for a value; raises KeyError when there is no such index."""
        self._check()
        return self._store.count_by_index(name, value)
