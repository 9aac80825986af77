"""Writes the status of TrainJobs: only what is ours, only when it changed, and many changes at once.

What is not the end of a TrainJob waits a little for more to come: a quarter of a second, and where only the counts of
jobs have moved, which as a rule precedes another state, up to a second; an error in other words, much longer. Where
very many wait, each waits longer: the rate limit would hold them up anyway, and meanwhile some come to their end, which
is told at once. How long a change has waited is all that is kept in memory: who starts anew finds the same difference,
and waits anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ktrainer.api.resources import TRAINJOBS
from ktrainer.controllers.fieldmanager import FIELD_MANAGER
from ktrainer.controllers.trainjob.applied import MOMENT_SECONDS
from ktrainer.controllers.trainjob.brevity import abridged
from ktrainer.controllers.trainjob.conditions import end_of
from ktrainer.controllers.trainjob.status import ours_of
from ktrainer.kube.access import Access
from ktrainer.kube.errors import Conflict, NotFound
from ktrainer.machinery.cache.answer import version_in
from ktrainer.machinery.control.reconcile import Stale

if TYPE_CHECKING:
    from ktrainer.aio.clock import Clock
    from ktrainer.api.trainjobstatus import TrainJobStatus
    from ktrainer.client.client import Client
    from ktrainer.controllers.metrics import TrainJobMetrics
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.machinery.cache.written import WrittenVersions

ACCESS: Final = (Access(TRAINJOBS, ("patch",), subresource="status"),)

COALESCING_SECONDS: Final = 0.25
"""How long a change waits for others, at most."""
COUNTING_SECONDS: Final = 1.0
"""How long a change of counts alone does."""
WORDING_SECONDS: Final = 30.0
"""How long an error does that is told in other words: many name a port or a time, and each write means another try."""

CROWD_SECONDS: Final = 0.01
"""How long a change waits for each of those that wait: half of what the default rate limit makes of it."""
LONGEST_SECONDS: Final = 2.0
"""How long a change waits, however many there are."""


class Publisher:
    """Writes statuses."""

    def __init__(
        self, client: Client, written: WrittenVersions, clock: Clock, metrics: TrainJobMetrics, *, in_full: bool
    ) -> None:
        """`in_full` is whether the conditions of TrainJobs that run are written too."""
        self._client = client
        self._metrics = metrics
        self._in_full = in_full
        self._written = written
        self._clock = clock
        self._waiting: dict[ObjectKey, float] = {}
        """Since when a change has been waiting."""
        self._reworded: dict[ObjectKey, float] = {}
        """Since when nothing but the words of a condition have differed."""

    async def publish(
        self, meta: ObjectMeta, old: TrainJobStatus, new: TrainJobStatus, *, at_once: bool = False
    ) -> float | None:
        """Write what changed, or say in how many seconds it will be time to; none where nothing is left to write.

        Raises Stale where the TrainJob is not as the cache shows it, and what the client raises.
        """
        before, after = ours_of(old), ours_of(new if self._in_full else abridged(new))
        if before == after:
            self._forget_waiting(meta.key)
            return None
        remaining = self._remaining(meta.key, before, after, at_once=at_once or end_of(new.conditions) is not None)
        if remaining > MOMENT_SECONDS:
            return remaining
        self._forget_waiting(meta.key)
        identity = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        # What is left out is removed: that must not be an end that no cache of ours shows yet.
        metadata = {**identity, "resourceVersion": meta.resource_version}
        body = {"apiVersion": TRAINJOBS.api_version, "kind": TRAINJOBS.kind, "metadata": metadata, "status": after}
        try:
            answer = await self._client.apply(
                TRAINJOBS, meta.key, orjson.dumps(body), field_manager=FIELD_MANAGER, subresource="status"
            )
        except (Conflict, NotFound) as error:
            raise Stale(f"the TrainJob has changed, or is gone: {error}") from error
        self._written.record(meta.key, meta.uid, TRAINJOBS, version_in(answer))
        self._metrics.status_written(meta, old, new)
        return None

    def forget(self, key: ObjectKey) -> None:
        """Forget a TrainJob that has finished or is gone."""
        self._forget_waiting(key)
        self._metrics.forget(key)

    def _forget_waiting(self, key: ObjectKey) -> None:
        self._waiting.pop(key, None)
        self._reworded.pop(key, None)

    def _remaining(self, key: ObjectKey, before: JsonObject, after: JsonObject, *, at_once: bool) -> float:
        """How many seconds a change has still to wait."""
        now = self._clock.monotonic()
        if _wordless(before) == _wordless(after):
            return self._reworded.setdefault(key, now) + WORDING_SECONDS - now
        if at_once:
            return 0.0
        only_counts = {**before, "jobsStatus": None} == {**after, "jobsStatus": None}
        since = self._waiting.setdefault(key, now)
        crowd = min(len(self._waiting) * CROWD_SECONDS, LONGEST_SECONDS)
        return since + max(COUNTING_SECONDS if only_counts else COALESCING_SECONDS, crowd) - now


def _wordless(status: JsonObject) -> JsonObject:
    """A status without what its conditions say in words."""
    conditions = [{**each, "message": ""} for each in status.get("conditions", ())]
    return {**status, "conditions": conditions}
