"""Whether unfinished TrainJobs refer to a runtime: by the cache, and surely."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from ktrainer.api.resources import TRAINJOBS
from ktrainer.controllers.references import (
    UNFINISHED_BY_RUNTIME,
    needed_runtime_of,
    runtime_value,
    unfinished_by_runtime,
)
from ktrainer.kube.access import Access
from ktrainer.machinery.cache.objects import CachedObject  # noqa: TC001 - msgspec reads the annotations at run time

if TYPE_CHECKING:
    from ktrainer.controllers.references import Reference
    from ktrainer.machinery.cache.informer import Informer
    from ktrainer.machinery.cache.source import ListerWatcher

ACCESS: Final = (Access(TRAINJOBS, ("list",)),)

PAGE_SIZE: Final = 200
"""TrainJobs of a page: so few are decoded in a few milliseconds."""


class _ListMeta(msgspec.Struct, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _TrainJobList(msgspec.Struct):
    metadata: _ListMeta = _ListMeta()
    items: list[CachedObject] = []


_lists = msgspec.json.Decoder(_TrainJobList)


class Usage:
    """What TrainJobs refer to."""

    def __init__(self, trainjobs: Informer[CachedObject], lister: ListerWatcher) -> None:
        """Adds an index to the TrainJobs."""
        self._trainjobs = trainjobs
        self._lister = lister
        trainjobs.store.add_index(UNFINISHED_BY_RUNTIME, unfinished_by_runtime)

    def is_in_use(self, runtime: Reference) -> bool:
        """Whether the cache has an unfinished TrainJob that refers to a runtime; takes the same time for any number."""
        return self._trainjobs.store.count_by_index(UNFINISHED_BY_RUNTIME, runtime_value(*runtime)) > 0

    async def fetch_is_in_use(self, runtime: Reference) -> bool:
        """Whether there is such a TrainJob now; raises what the client raises."""
        token = ""
        while True:
            page = _lists.decode(
                await self._lister.list_page(
                    TRAINJOBS, namespace=runtime.key.namespace, limit=PAGE_SIZE, continue_token=token
                )
            )
            if any(needed_runtime_of(trainjob) == runtime for trainjob in page.items):
                return True
            token = page.metadata.continue_
            if not token:
                return False
