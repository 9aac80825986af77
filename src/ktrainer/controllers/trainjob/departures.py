"""How JobSets ended that are gone: one that ended and was deleted at once has ended nevertheless.

Kept until the TrainJob has finished or is gone; of a JobSet that goes later than that, nothing is. This is so on every
replica, whoever reconciles: all of it is done by handlers of the informers of both kinds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.resources import TRAINJOBS
from ktrainer.api.trainjobstatus import State
from ktrainer.controllers.references import by_state
from ktrainer.kube.identity import ObjectKey
from ktrainer.kube.owners import owners_of
from ktrainer.machinery.cache.objects import decoded
from ktrainer.plugins.jobset.status import status_of

if TYPE_CHECKING:
    from ktrainer.framework.workload import WorkloadStatus
    from ktrainer.machinery.cache.informer import Informer
    from ktrainer.machinery.cache.objects import CachedObject


class Departures:
    """The ends of JobSets that are gone, by the TrainJob that controlled them. A handler of the JobSets' informer."""

    def __init__(self, trainjobs: Informer[CachedObject], jobsets: Informer[CachedObject]) -> None:
        self._trainjobs = trainjobs
        self._jobsets = jobsets
        self._ends: dict[ObjectKey, tuple[str, WorkloadStatus]] = {}
        """With the uid of the TrainJob."""
        self._held: dict[ObjectKey, str] = {}
        """The uids of TrainJobs whose JobSet was suspended when it went."""

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        """A JobSet that is there speaks for itself."""
        self.forget(obj.key)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Nothing is gone."""

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        """Keep how it ended, as far as that was seen and anybody will want to know."""
        for owner in owners_of(obj.metadata, TRAINJOBS.group_kind, only_controller=True):
            key = ObjectKey(obj.metadata.namespace, owner.name)
            if not self._is_awaited(key, owner.uid):
                continue
            spec = decoded(obj.spec) or {}
            status = status_of({"spec": spec, "status": decoded(obj.status)})
            if status.finished:
                self._ends[key] = (owner.uid, status)
            elif spec.get("suspend") and not is_final_state_unknown:
                self._held[key] = owner.uid

    def last_of(self, key: ObjectKey, uid: str) -> WorkloadStatus | None:
        """How the JobSet of a TrainJob ended, if it is gone and had ended before."""
        owner, status = self._ends.get(key, ("", None))
        return status if owner == uid else None

    @property
    def is_behind(self) -> bool:
        """Whether the cache may lack a JobSet of which nothing was kept yet: a relist is told in slices."""
        return self._jobsets.is_telling

    def was_held(self, key: ObjectKey, uid: str) -> bool:
        """Whether the JobSet of a TrainJob was suspended when it went: such a one cannot have ended unseen."""
        return self._held.get(key) == uid

    def forget(self, key: ObjectKey) -> None:
        """Forget the JobSet of a TrainJob."""
        self._ends.pop(key, None)
        self._held.pop(key, None)

    def forget_of(self, trainjob: CachedObject, *, only_if_over: bool) -> None:
        """Forget the JobSet of this very TrainJob, not that of another of its name."""
        uid, _ = self._ends.get(trainjob.key, (self._held.get(trainjob.key), None))
        if uid == trainjob.metadata.uid and (not only_if_over or _is_over(trainjob)):
            self.forget(trainjob.key)

    def _is_awaited(self, key: ObjectKey, uid: str) -> bool:
        """Whether the end of a TrainJob has yet to come: as a rule it has, or the TrainJob is gone, before its JobSet.

        At the start the TrainJob may just not be known yet.
        """
        trainjob = self._trainjobs.store.get(key)
        if trainjob is None:
            return not self._trainjobs.has_synced
        return trainjob.metadata.uid == uid and not _is_over(trainjob)


class ForgetFinished:
    """Forgets the JobSets of TrainJobs that have finished or are gone. A handler of the TrainJobs' informer."""

    def __init__(self, departures: Departures) -> None:
        self._departures = departures

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        """Look at a TrainJob that is there."""
        self._departures.forget_of(obj, only_if_over=True)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        """Look at a TrainJob that changed."""
        self._departures.forget_of(new, only_if_over=True)

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        """Forget the JobSet of a TrainJob that is gone."""
        self._departures.forget_of(obj, only_if_over=False)


def _is_over(trainjob: CachedObject) -> bool:
    """Whether a TrainJob has finished, so that no JobSet can tell anything of it any more.

    One that is being deleted has not: whoever holds it may want to know how it ends.
    """
    return by_state(trainjob)[0] in (State.COMPLETE, State.FAILED)
