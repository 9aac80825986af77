"""Writes a report into the TrainJob's status: of that very TrainJob, and never after its end.

The API server only takes it for the version of the TrainJob that we have looked at, so that the end cannot come in
between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import orjson

from ktrainer.api.resources import TRAINJOBS
from ktrainer.kube.access import Access
from ktrainer.kube.errors import Conflict, Invalid, NotFound
from ktrainer.statusserver.refusal import Refusal, failed, finished, no_such_trainjob
from ktrainer.statusserver.report import MANAGER, build_apply

if TYPE_CHECKING:
    from ktrainer.kube.identity import ObjectKey, Resource
    from ktrainer.statusserver.report import Report, Target
    from ktrainer.statusserver.trainjobs import Standing, TrainJobs

ACCESS: Final = (Access(TRAINJOBS, ("patch",), subresource="status"),)

TRIES: Final = 5
"""How often a TrainJob may change under our hands before we give up for now."""


class Applier(Protocol):
    """Applies objects; must not be fenced, as every replica serves pods."""

    async def apply(
        self, resource: Resource, key: ObjectKey, body: bytes, *, field_manager: str, subresource: str
    ) -> bytes:
        """Apply an object by force."""
        ...


class ReportWriter:
    """Writes reports."""

    def __init__(self, trainjobs: TrainJobs, applier: Applier) -> None:
        self._trainjobs = trainjobs
        self._applier = applier

    async def write(self, target: Target, report: Report, *, unless_newer: bool = False) -> None:
        """Write a report; with `unless_newer` nothing happens where the TrainJob has a later one.

        Raises Refusal, and ApiError or TransportError when the API server fails.
        """
        standing = await self._trainjobs.find(target.key)
        if standing is not None and standing.uid != target.uid:
            # A cache that is behind may still show a namesake that has gone.
            standing = await self._trainjobs.fetch(target.key)
        for _ in range(TRIES):
            current = check_standing(target, standing)
            if unless_newer and current.reported_at is not None and current.reported_at > report.reported_at:
                return
            if await self._apply(target, current.resource_version, report):
                return
            standing = await self._trainjobs.fetch(target.key)
        raise failed(f"the TrainJob {target.key} does not stop changing")

    async def _apply(self, target: Target, resource_version: str, report: Report) -> bool:
        """Whether the TrainJob still had that version."""
        body = orjson.dumps(build_apply(target, resource_version, report))
        try:
            await self._applier.apply(TRAINJOBS, target.key, body, field_manager=MANAGER, subresource="status")
        except Conflict:
            return False
        except NotFound:
            raise no_such_trainjob(target.key) from None
        except Invalid as error:
            # The CRD in the cluster may know rules that we do not.
            raise Refusal(422, "Invalid", error.message) from None
        return True


def check_standing(target: Target, standing: Standing | None) -> Standing:
    """The standing of a TrainJob that takes reports; raises Refusal for any other."""
    if standing is None or standing.uid != target.uid:
        raise no_such_trainjob(target.key)
    if standing.is_finished:
        raise finished(target.key)
    return standing
