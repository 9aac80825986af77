"""Brings the objects that a TrainJob needs to the API server.

No object is written over that the TrainJob does not control, and none is written that is as it should be.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import orjson
import structlog

from ktrainer.api.labels import TRAINJOB_NAME
from ktrainer.api.resources import CONFIG_MAPS, HORIZONTAL_POD_AUTOSCALERS, JOBSETS
from ktrainer.client.patchtype import PatchType
from ktrainer.controllers.fieldmanager import FIELD_MANAGER
from ktrainer.controllers.trainjob.size import check_size
from ktrainer.controllers.trainjob.verdict import ChangeRefused, ForeignObject, ResizeRefused, is_too_large
from ktrainer.framework.component import Write, is_controlled
from ktrainer.kube.access import Access
from ktrainer.kube.errors import AlreadyExists, ApiError, Conflict, Forbidden, Invalid, NotFound
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.control.reconcile import Stale

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.client.client import Client
    from ktrainer.controllers.trainjob.applied import Applied
    from ktrainer.framework.component import Component
    from ktrainer.framework.reader import Reader
    from ktrainer.framework.watch import Watch
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.machinery.cache.written import WrittenVersions

ACCESS: Final = (
    # Read before they are first applied, since no cache has them, or not all of them.
    Access(CONFIG_MAPS, ("get",)),
    Access(HORIZONTAL_POD_AUTOSCALERS, ("get",)),
    # Looked at where they refuse to change, and made anew if they never ran.
    Access(JOBSETS, ("get", "delete")),
)

_log = structlog.get_logger(__name__)

_IMMUTABLE: Final = " is immutable"
"""In what servers say of a change that they refuse, whether a rule of the kind or a webhook does; unlike of an object
that would be wrong in any case."""


class SnapshotAppeared(Exception):
    """A snapshot was there before ours, in no cache: what was planned without it does not count."""


class Writer:
    """Writes components."""

    def __init__(
        self,
        client: Client,
        reader: Reader,
        watches: Mapping[Resource, Watch],
        applied: Applied,
        written: WrittenVersions,
    ) -> None:
        """`watches` are what the reader has caches of."""
        self._client = client
        self._reader = reader
        self._watches = watches
        self._applied = applied
        self._written = written

    async def write(self, trainjob: TrainJob, component: Component, *, is_settled: bool) -> None:
        """Write an object unless it is as it should be.

        `is_settled` says that the TrainJob's status tells of everything being applied for its present spec. Raises
        WriteRefused, Stale, SnapshotAppeared, and what the client raises.
        """
        match component.write:
            case Write.APPLY:
                await self._apply(trainjob, component, is_settled=is_settled)
            case Write.CREATE:
                await self._create(trainjob, component)
            case Write.PATCH:
                await self._patch(trainjob, component)

    async def _apply(self, trainjob: TrainJob, component: Component, *, is_settled: bool) -> None:
        owner, resource, name = trainjob.metadata.key, component.resource, component.name
        body = orjson.dumps(component.body)
        is_same = self._applied.is_same(owner, resource, name, body)
        if is_same and resource not in self._watches:
            return
        present = await self._find(trainjob, component)
        if present is not None:
            if not is_controlled(present, trainjob.metadata.uid):
                raise ForeignObject(resource, name)
            # Who starts anew does not know what was applied, but may trust a status that says so.
            is_current = is_same or (is_settled and not self._applied.is_known(owner, resource, name))
            if is_current and not self._applied.has_drifted(owner, resource, name, component.body, present):
                return
            self._applied.check_peace(owner, resource, name, body)
        check_size(component, body)
        self._applied.check_too_large(owner, body)
        await self._insist(trainjob, component, present)

    async def _insist(self, trainjob: TrainJob, component: Component, present: JsonObject | None) -> None:
        """Apply an object; where the one that is there refuses to change, do what can be done with it."""
        resource, name = component.resource, component.name
        try:
            await self._send(trainjob, component, present)
        except Invalid as error:
            if present is None or component.fallback is None or _IMMUTABLE not in error.message:
                raise
            live = await self._reader.fetch(resource, trainjob.metadata.namespace, name, live=True)
            fallback = (
                component.fallback(live, FIELD_MANAGER) if live and is_controlled(live, trainjob.metadata.uid) else None
            )
            if live is None or fallback is None:
                raise Stale(f"the {resource.kind} {name} has changed meanwhile") from error
            if fallback.body is not None:
                await self._send(trainjob, replace(component, body=fallback.body), live)
            if not fallback.renews:
                raise ChangeRefused(fallback.reason, error) from error
            await self._delete(trainjob, resource, live)
            # At once: as long as it is missing, somebody might wonder what has become of it.
            await self._send(trainjob, component, None)

    async def _send(self, trainjob: TrainJob, component: Component, present: JsonObject | None) -> None:
        owner, resource, name = trainjob.metadata.key, component.resource, component.name
        body = orjson.dumps(component.body)
        sent = body if present is None else _with_uid(component, present)
        key = ObjectKey(trainjob.metadata.namespace, name)
        try:
            answer = await self._client.apply(resource, key, sent, field_manager=FIELD_MANAGER)
        except Conflict as error:
            if present is None or self._applied.is_lasting_conflict(owner, resource, name, sent):
                raise
            raise Stale(f"the {resource.kind} {name} is not the one that we know: {error}") from error
        except ApiError as error:
            if is_too_large(error):
                self._applied.note_too_large(owner, body, error)
            raise
        value: JsonObject = orjson.loads(answer)
        self._applied.note(owner, resource, name, body, component.body, value)
        self._note(trainjob, resource, value)

    async def _delete(self, trainjob: TrainJob, resource: Resource, present: JsonObject) -> None:
        """Delete an object that shall be made anew, if it is still as it was when that was decided."""
        name, uid, version = (present["metadata"][field] for field in ("name", "uid", "resourceVersion"))
        _log.info("an object refuses to change, and is made anew", kind=resource.kind, uid=uid)
        key = ObjectKey(trainjob.metadata.namespace, name)
        try:
            await self._client.delete(resource, key, uid=uid, resource_version=version)
        except (Conflict, NotFound) as error:
            sent, owner = orjson.dumps([uid, version]), trainjob.metadata.key
            if isinstance(error, Conflict) and self._applied.is_lasting_conflict(owner, resource, name, sent):
                raise
            raise Stale(f"the {resource.kind} {name} has changed meanwhile: {error}") from error

    async def _find(self, trainjob: TrainJob, component: Component) -> JsonObject | None:
        namespace, resource, name = trainjob.metadata.namespace, component.resource, component.name
        present = await self._reader.fetch(resource, namespace, name)
        watch = self._watches.get(resource)
        if present is not None or watch is None or not watch.labelled:
            return present
        # The cache shows only what has our label; under this name there may be something else.
        return await self._reader.fetch(resource, namespace, name, live=True)

    async def _create(self, trainjob: TrainJob, component: Component) -> None:
        body = orjson.dumps(component.body)
        check_size(component, body)
        namespace = trainjob.metadata.namespace
        try:
            answer = await self._client.create(component.resource, namespace, body, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            await self._adopt(trainjob, component)
            return
        self._note(trainjob, component.resource, orjson.loads(answer))

    async def _adopt(self, trainjob: TrainJob, component: Component) -> None:
        """Look at an object that was there before: ours, from a try without an answer or from the original, is fine."""
        resource, name = component.resource, component.name
        present = await self._reader.fetch(resource, trainjob.metadata.namespace, name, live=True)
        if present is None:
            raise Stale(f"the {resource.kind} {name} has just gone")
        if not is_controlled(present, trainjob.metadata.uid):
            raise ForeignObject(resource, name)
        if resource == CONFIG_MAPS and present.get("data") != component.body.get("data"):
            raise SnapshotAppeared(name)
        self._note(trainjob, resource, present)

    async def _patch(self, trainjob: TrainJob, component: Component) -> None:
        owner, resource, name = trainjob.metadata.key, component.resource, component.name
        content, sent = _content_of(component), orjson.dumps(component.body)
        check_size(component, content)
        self._applied.check_peace(owner, resource, name, content)
        key = ObjectKey(trainjob.metadata.namespace, name)
        try:
            answer = await self._client.patch(resource, key, sent, PatchType.MERGE, field_manager=FIELD_MANAGER)
        except (Conflict, NotFound) as error:
            if isinstance(error, Conflict) and self._applied.is_lasting_conflict(owner, resource, name, sent):
                raise
            raise Stale(f"the {resource.kind} {name} has changed meanwhile: {error}") from error
        except (Invalid, Forbidden) as error:
            raise ResizeRefused(error) if "replicatedJobs" in component.body.get("spec", {}) else error from error
        value: JsonObject = orjson.loads(answer)
        self._applied.note(owner, resource, name, content, {}, value)
        self._note(trainjob, resource, value)

    def _note(self, trainjob: TrainJob, resource: Resource, answer: JsonObject) -> None:
        """Note a write that the cache will show."""
        watch, metadata = self._watches.get(resource), answer["metadata"]
        if watch and (not watch.labelled or TRAINJOB_NAME in (metadata.get("labels") or {})):
            version = metadata.get("resourceVersion", "")
            self._written.record(trainjob.metadata.key, trainjob.metadata.uid, resource, version)


def _content_of(component: Component) -> bytes:
    """What a patch changes, whatever the version of the object that it is for."""
    metadata = {field: value for field, value in component.body["metadata"].items() if field != "resourceVersion"}
    return orjson.dumps({**component.body, "metadata": metadata})


def _with_uid(component: Component, present: JsonObject) -> bytes:
    """The body for the very object that is there: if it has gone meanwhile, it must not come back by accident."""
    metadata = {**component.body["metadata"], "uid": present["metadata"]["uid"]}
    return orjson.dumps({**component.body, "metadata": metadata})
