"""The queue of a controller that may have to wait before it works, as on a replica that does not lead.

The handlers fill it all the while, so that it is ready when its time comes, which may be in months. Until then it holds
the keys of objects that are there, and no others: a process that has done nothing for an object has nothing to do when
it is gone. What an object leaves behind is deleted after it, and names it once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.store import Store
    from ktrainer.machinery.queue.workqueue import WorkQueue


class StandbyQueue:
    """The end of a workqueue at which keys go in, and until somebody works on them, also out."""

    def __init__(self, queue: WorkQueue[ObjectKey], objects: Store[Any]) -> None:
        """`objects` are those that the keys are of. Their deletions must come here, too."""
        self._queue = queue
        self._objects = objects

    def add(self, key: ObjectKey, *, priority: int = 0) -> None:
        """Give the key a turn; while nobody works, only if its object is there."""
        if self._queue.is_attended or self._objects.get(key) is not None:
            self._queue.add(key, priority=priority)
        else:
            self._queue.discard(key)

    def forget(self, key: ObjectKey) -> None:
        """Forget the failures of the key."""
        self._queue.forget(key)
