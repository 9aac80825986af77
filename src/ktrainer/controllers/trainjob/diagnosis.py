"""When to look for what failed first in a TrainJob: at each restart of its workload and at its end, and again where the
pods could not be seen. What is kept in memory is only what was looked at already: who starts anew looks once more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from ktrainer.client.errors import TransportError
from ktrainer.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ktrainer.api.trainjobstatus import FirstFailure
    from ktrainer.framework.workload import WorkloadStatus
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.kube.meta import ObjectMeta

_log = structlog.get_logger(__name__)

LOOK_SECONDS: Final = 30.0
"""How long looking may take: half of a turn, of which the other half is for telling what is known without it."""


class Diagnosis:
    """Looks for first failures."""

    def __init__(self, look: Callable[[ObjectKey, str | None], Awaitable[FirstFailure | None]]) -> None:
        """`look` finds what failed first among the pods of a TrainJob, given when it was created."""
        self._look = look
        self._restarts: dict[ObjectKey, int] = {}
        """How often the workload of an unfinished TrainJob had been restarted when it was last asked about."""
        self._owed: set[ObjectKey] = set()
        """The TrainJobs whose pods could not be seen."""

    def is_owed(self, key: ObjectKey) -> bool:
        """Whether the failures of a TrainJob have still to be looked at."""
        return key in self._owed

    def is_due(self, key: ObjectKey, workload: WorkloadStatus | None) -> bool:
        """Whether to look at an unfinished TrainJob: what failed before a restart is gone soon."""
        if workload is None:
            return False
        known, self._restarts[key] = self._restarts.get(key, 0), workload.restarts
        return workload.restarts > known or key in self._owed

    async def fetch(self, meta: ObjectMeta) -> FirstFailure | None:
        """What failed first; none where that cannot be told, which must not keep the failure itself from being told."""
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                failure = await self._look(meta.key, meta.creation_timestamp)
        except Exception as error:  # whatever it is, see above; a bug comes with its stack
            is_expected = isinstance(error, ApiError | TransportError | TimeoutError)
            told = str(error) or f"it takes more than {LOOK_SECONDS:g} s"
            _log.warning("cannot tell what failed first", error=told, exc_info=None if is_expected else error)
            self._owed.add(meta.key)
            return None
        self._owed.discard(meta.key)
        return failure

    def forget(self, key: ObjectKey, *, is_gone: bool = False) -> None:
        """Forget a TrainJob that has finished; what is owed to it, only where it is gone."""
        self._restarts.pop(key, None)
        if is_gone:
            self._owed.discard(key)
