"""What the progress server has to know of a TrainJob, from the cache or as it is now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from ktrainer.api.resources import TRAINJOBS
from ktrainer.api.trainjobstatus import ENDS
from ktrainer.kube.access import Access
from ktrainer.kube.conditions import TRUE
from ktrainer.kube.errors import NotFound
from ktrainer.kube.timestamp import parse_time
from ktrainer.machinery.cache.objects import CachedObject, decoded

if TYPE_CHECKING:
    from datetime import datetime

    from ktrainer.kube.identity import ObjectKey, Resource

ACCESS: Final = (Access(TRAINJOBS, ("get",)),)


class Cached(Protocol):
    """The TrainJobs in a cache."""

    def get(self, key: ObjectKey) -> CachedObject | None:
        """The TrainJob, where the cache has it."""
        ...


class Getter(Protocol):
    """Reads objects as they are now."""

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        """Return the object; raises NotFound."""
        ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How a TrainJob is at one of its versions."""

    uid: str
    resource_version: str
    is_finished: bool
    reported_at: datetime | None
    """The time in the last report that was written."""


class TrainJobs:
    """Looks TrainJobs up."""

    def __init__(self, cached: Cached, getter: Getter) -> None:
        self._cached = cached
        self._getter = getter

    async def find(self, key: ObjectKey) -> Standing | None:
        """The TrainJob as the cache has it, and where it has none, as it is."""
        cached = self._cached.get(key)
        return await self.fetch(key) if cached is None else standing_of(cached)

    async def fetch(self, key: ObjectKey) -> Standing | None:
        """The TrainJob as it is now; none where there is none."""
        try:
            body = await self._getter.get(TRAINJOBS, key)
        except NotFound:
            return None
        return standing_of(msgspec.json.decode(body, type=CachedObject))


def standing_of(trainjob: CachedObject) -> Standing:
    """What matters of a TrainJob here."""
    status: dict[str, Any] = decoded(trainjob.status) or {}
    conditions = status.get("conditions") or ()
    return Standing(
        uid=trainjob.metadata.uid,
        resource_version=trainjob.metadata.resource_version,
        is_finished=any(each.get("type") in ENDS and each.get("status") == TRUE for each in conditions),
        reported_at=_time_of((status.get("trainerStatus") or {}).get("lastUpdatedTime")),
    )


def _time_of(text: object) -> datetime | None:
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None
