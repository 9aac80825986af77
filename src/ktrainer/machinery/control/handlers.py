"""From changes of objects to keys in a workqueue.

What nobody waits for goes behind what just happened: the objects that were there at the beginning, and updates that
bring nothing new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol

from ktrainer.kube.identity import ObjectKey
from ktrainer.kube.owners import owners_of
from ktrainer.machinery.cache.objects import CachedObject, T, is_same_version
from ktrainer.machinery.queue.workqueue import HIGH_PRIORITY, LOW_PRIORITY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ktrainer.kube.identity import Resource


class Adder(Protocol):
    """The end of a workqueue at which keys go in."""

    def add(self, key: ObjectKey, *, priority: int = ...) -> None:
        """Give the key a turn."""
        ...


def priority_of_add(is_initial: bool) -> int:
    """The priority at which to deal with an object that is there."""
    return LOW_PRIORITY if is_initial else 0


def priority_of_update(old: CachedObject, new: CachedObject) -> int:
    """The priority at which to deal with an update."""
    return LOW_PRIORITY if is_same_version(old, new) else 0


class Forgiver(Adder, Protocol):
    """A workqueue that can be told to forget how often a key has failed."""

    def forget(self, key: ObjectKey) -> None:
        """Forget the failures of the key."""
        ...


class EnqueueForObject:
    """Enqueues the object itself. A changed spec is a new task: the failures of the old one do not slow it down."""

    def __init__(self, queue: Forgiver) -> None:
        self._queue = queue

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        """Enqueue an object that is there."""
        self._queue.add(obj.key, priority=priority_of_add(is_initial))

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Enqueue an object that changed."""
        if old.metadata.generation != new.metadata.generation:
            self._queue.forget(new.key)
        self._queue.add(new.key, priority=priority_of_update(old, new))

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        """Enqueue an object that is gone, however well it is known."""
        # One that comes back under its name may be here before the turn is, and has not failed yet.
        self._queue.forget(obj.key)
        self._queue.add(obj.key, priority=0)


class MapFunc(Generic[T]):
    """Enqueues the keys that a function names for an object; for an update, those of the old and of the new."""

    def __init__(self, queue: Adder, function: Callable[[T], Iterable[ObjectKey]]) -> None:
        self._queue = queue
        self._function = function

    def on_add(self, obj: T, is_initial: bool) -> None:
        """Enqueue the keys of an object that is there."""
        self._enqueue((obj,), priority_of_add(is_initial))

    def on_update(self, old: T, new: T) -> None:
        """Enqueue the keys of both."""
        self._enqueue((new,) if old is new else (old, new), priority_of_update(old, new))

    def on_delete(self, obj: T, is_final_state_unknown: bool) -> None:
        """Enqueue the keys of an object that is gone, however well it is known."""
        self._enqueue((obj,), 0)

    def _enqueue(self, objects: Iterable[T], priority: int) -> None:
        for key in dict.fromkeys(key for obj in objects for key in self._function(obj)):
            self._queue.add(key, priority=priority)


class EnqueueAnew:
    """Enqueues keys for which a new time has begun, of which no object tells; their failures belong to the old one."""

    def __init__(self, queue: Forgiver, function: Callable[[], Iterable[ObjectKey]]) -> None:
        self._queue = queue
        self._function = function

    def __call__(self) -> None:
        """Enqueue the keys that the function names now. They may be many: what just happened goes first."""
        for key in self._function():
            self._queue.forget(key)
            self._queue.add(key, priority=LOW_PRIORITY)


class EnqueueForOwner(MapFunc[CachedObject]):
    """Enqueues the object's owners of one kind, in whatever version their references speak of it."""

    def __init__(
        self,
        queue: Adder,
        owner: Resource,
        *,
        only_controller: bool = False,
        is_urgent: Callable[[CachedObject], bool] = lambda obj: False,
    ) -> None:
        """What is new of an object that `is_urgent` goes before all else."""
        super().__init__(queue, lambda obj: _owner_keys(obj, owner, only_controller))
        self._is_urgent = is_urgent

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Enqueue the owners of both, which as a rule are the same."""
        if old.metadata.owner_references == new.metadata.owner_references:
            priority = priority_of_update(old, new)
            self._enqueue((new,), HIGH_PRIORITY if priority == 0 and self._is_urgent(new) else priority)
        else:
            super().on_update(old, new)


def _owner_keys(obj: CachedObject, owner: Resource, only_controller: bool) -> Iterable[ObjectKey]:
    # An owner is in the namespace of what it owns, unless it is in none.
    namespace = obj.metadata.namespace if owner.namespaced else ""
    references = owners_of(obj.metadata, owner.group_kind, only_controller=only_controller)
    return (ObjectKey(namespace, reference.name) for reference in references)
