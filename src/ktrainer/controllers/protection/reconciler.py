"""Adds the finalizer to runtimes that are in use, and removes it from those that are not.

Both sides are looked at in caches, which may lag. A finalizer that was removed too early is added again when the
TrainJob shows up, unless the runtime is being deleted: then it would be gone. So the last step before that asks the
server itself. A write is for one version of a runtime only, so that a runtime that is newer than the cache, be it by
our own last write, is not written to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES
from ktrainer.client.patchtype import PatchType
from ktrainer.controllers.fieldmanager import FIELD_MANAGER
from ktrainer.controllers.protection.finalizer import build_patch, is_wrong
from ktrainer.controllers.references import Reference, needed_runtime_of
from ktrainer.kube.access import Access
from ktrainer.kube.errors import Conflict, NotFound
from ktrainer.machinery.control.handlers import MapFunc
from ktrainer.machinery.control.reconcile import Result, Stale
from ktrainer.machinery.control.standby import StandbyQueue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.controllers.protection.usage import Usage
    from ktrainer.kube.identity import ObjectKey, Resource
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.machinery.cache.informer import Informer
    from ktrainer.machinery.cache.objects import CachedObject
    from ktrainer.machinery.queue.workqueue import WorkQueue

ACCESS: Final = (Access(TRAINING_RUNTIMES, ("patch",)), Access(CLUSTER_TRAINING_RUNTIMES, ("patch",)))


KEPT_SECONDS: Final = 30.0
"""When a runtime is looked at again that is kept by a TrainJob which no cache shows: that may go unseen."""


class Patcher(Protocol):
    """Changes objects."""

    async def patch(
        self, resource: Resource, key: ObjectKey, body: bytes, patch_type: PatchType, *, field_manager: str
    ) -> bytes:
        """Change an object and return it as stored."""
        ...


class RuntimeProtector:
    """The finalizers of one kind of runtimes."""

    def __init__(self, runtimes: Informer[CachedObject], usage: Usage | None, client: Patcher) -> None:
        """Without `usage` no runtime counts as in use: the finalizer is removed wherever it is met."""
        self._resource: Resource = runtimes.view.resource
        self._runtimes = runtimes
        self._usage = usage
        self._client = client

    async def reconcile(self, key: ObjectKey) -> Result:
        """Make the finalizer of one runtime right; raises Stale where the cache lags, and what the client raises."""
        runtime = self._runtimes.reader.get(key)
        if runtime is None:
            return Result()
        in_use = self._is_in_use(key)
        if not is_wrong(runtime.metadata, in_use=in_use):
            return Result()
        if await self._is_kept(runtime.metadata, in_use=in_use):
            return Result(requeue_after=KEPT_SECONDS)
        patch = build_patch(runtime.metadata, in_use=in_use)
        try:
            await self._client.patch(self._resource, key, patch, PatchType.MERGE, field_manager=FIELD_MANAGER)
        except NotFound:
            return Result()
        except Conflict as error:
            raise Stale(f"the runtime is newer than the cache: {error}") from error
        return Result()

    def wake(self, queue: WorkQueue[ObjectKey], trainjobs: Informer[CachedObject]) -> None:
        """Give runtimes turns when something changes that concerns them."""
        standby = StandbyQueue(queue, self._runtimes.store)
        self._runtimes.add_handler(MapFunc(standby, self.wrong_runtime))
        if self._usage is not None:
            trainjobs.add_handler(MapFunc(standby, self.wrong_runtime_of))

    def wrong_runtime(self, runtime: CachedObject) -> Iterable[ObjectKey]:
        """The runtime itself, if its finalizer is not right as far as the caches know, or it is gone.

        That it is gone has to reach the queue of a replica that does not lead, or that would keep the key for ever.
        """
        return (runtime.key,) if self._runtimes.store.get(runtime.key) is None else self._if_wrong(runtime.key)

    def wrong_runtime_of(self, trainjob: CachedObject) -> Iterable[ObjectKey]:
        """The runtime that a TrainJob needs, or needed before a change, if its finalizer is not right.

        Most TrainJobs of a runtime come and go while others need it as well, and cause no work. Nothing is missed when
        a cache lags: its next change is looked at in the same way.
        """
        needed = needed_runtime_of(trainjob)
        return self._if_wrong(needed.key) if needed is not None and needed.resource == self._resource else ()

    def _if_wrong(self, key: ObjectKey) -> tuple[ObjectKey, ...]:
        runtime = self._runtimes.store.get(key)
        return (key,) if runtime is not None and is_wrong(runtime.metadata, in_use=self._is_in_use(key)) else ()

    def _is_in_use(self, key: ObjectKey) -> bool:
        return self._usage is not None and self._usage.is_in_use(Reference(self._resource, key))

    async def _is_kept(self, runtime: ObjectMeta, *, in_use: bool) -> bool:
        """Whether a runtime that is about to go for good is in use after all."""
        if in_use or self._usage is None or not runtime.is_deleting:
            return False
        return await self._usage.fetch_is_in_use(Reference(self._resource, runtime.key))
