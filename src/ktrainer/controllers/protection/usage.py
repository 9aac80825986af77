"""Whether unfinished TrainJobs refer to a runtime: by the cache, and surely."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Final

import msgspec

from ktrainer.api.resources import TRAINJOBS
from ktrainer.controllers.paging import Page, pages_of
from ktrainer.controllers.references import (
    UNFINISHED_BY_RUNTIME,
    needed_runtime_of,
    runtime_value,
    unfinished_by_runtime,
)
from ktrainer.kube.access import Access
from ktrainer.machinery.cache.objects import CachedObject

if TYPE_CHECKING:
    from ktrainer.controllers.references import Reference
    from ktrainer.machinery.cache.informer import Informer
    from ktrainer.machinery.cache.source import ListerWatcher

ACCESS: Final = (Access(TRAINJOBS, ("list",)),)

_PAGES: Final = msgspec.json.Decoder(Page[CachedObject])


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
        async with aclosing(pages_of(self._lister, TRAINJOBS, _PAGES, namespace=runtime.key.namespace)) as pages:
            async for page in pages:
                if any(needed_runtime_of(trainjob) == runtime for trainjob in page):
                    return True
        return False
