"""Which changes are worth a handler's while.

A predicate only ever decides about an update that brings something new. Adds, deletes, and updates that show an object
once more always pass, whatever the predicate and however it is combined: one that held them back would leave objects
behind, or take away the safety net that a resync is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeAlias

from ktrainer.machinery.cache.objects import CachedObject, T, is_same_version

if TYPE_CHECKING:
    from ktrainer.machinery.cache.distribution import Handler

Predicate: TypeAlias = Callable[[T, T], bool]
"""Whether the step from the old object to the new matters."""


def generation_changed(old: CachedObject, new: CachedObject) -> bool:
    """Whether the spec changed; servers do not count changes of metadata and status."""
    return old.metadata.generation != new.metadata.generation


def labels_changed(old: CachedObject, new: CachedObject) -> bool:
    """Whether a label was set, changed or taken away."""
    return old.metadata.labels != new.metadata.labels


def annotations_changed(old: CachedObject, new: CachedObject) -> bool:
    """Whether an annotation was set, changed or taken away."""
    return old.metadata.annotations != new.metadata.annotations


def all_of(*predicates: Predicate[T]) -> Predicate[T]:
    """A predicate that holds when all of these do."""
    return lambda old, new: all(predicate(old, new) for predicate in predicates)


def any_of(*predicates: Predicate[T]) -> Predicate[T]:
    """A predicate that holds when one of these does."""
    return lambda old, new: any(predicate(old, new) for predicate in predicates)


def negation_of(predicate: Predicate[T]) -> Predicate[T]:
    """A predicate that holds when this one does not."""
    return lambda old, new: not predicate(old, new)


class Filtered(Generic[T]):
    """A handler that is told only of updates for which all predicates hold, and of everything else."""

    def __init__(self, handler: Handler[T], *predicates: Predicate[T]) -> None:
        self._handler = handler
        self._matters = all_of(*predicates)

    def on_add(self, obj: T, is_initial: bool) -> None:
        """Tell."""
        self._handler.on_add(obj, is_initial)

    def on_update(self, old: T, new: T) -> None:
        """Tell if the change matters, or if there is none."""
        if is_same_version(old, new) or self._matters(old, new):
            self._handler.on_update(old, new)

    def on_delete(self, obj: T, is_final_state_unknown: bool) -> None:
        """Tell."""
        self._handler.on_delete(obj, is_final_state_unknown)
