"""Where the runtime of a TrainJob comes from: its snapshot, or the runtime itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ktrainer.api.resources import CONFIG_MAPS, NAMESPACES
from ktrainer.api.trainingruntime import RunPolicy
from ktrainer.framework.findings import Findings
from ktrainer.framework.reader import fetch_surely
from ktrainer.kube import fields
from ktrainer.kube.access import Access
from ktrainer.kube.fields import Path, message_of
from ktrainer.runtime import snapshot
from ktrainer.runtime.blueprint import read_blueprint
from ktrainer.runtime.errors import Rejected, RuntimeNotFound, SnapshotInvalid
from ktrainer.runtime.selector import is_selected

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.reader import Reader
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.runtime.blueprint import Blueprint

ACCESS: Final = (Access(CONFIG_MAPS, ("get",)), Access(NAMESPACES, ("get",)))

_REF: Final = Path("spec.runtimeRef")
_KEPT: Final = 256
"""How many runtimes are remembered: many TrainJobs share few."""


class Source:
    """Reads runtimes of one kind and their snapshots."""

    def __init__(self, resource: Resource, reader: Reader) -> None:
        self._resource = resource
        self._reader = reader
        self._known: dict[str, tuple[Blueprint, str]] = {}
        """Runtimes and the texts of their snapshots, by version or digest; the latest used is the last."""
        self._refused: dict[str, str] = {}
        """Why snapshots cannot be used, by digest: a bad one shall not cost its reading again and again."""

    async def resolve(self, trainjob: TrainJob, *, is_new: bool = False) -> tuple[Blueprint, str, bool]:
        """The runtime that a TrainJob goes by, the text of its snapshot, and whether that has yet to be written.

        A snapshot of a TrainJob that `is_new` is looked for in the caches only. Raises SnapshotInvalid,
        RuntimeNotFound, and Rejected where the runtime is malformed.
        """
        kept = await self.kept(trainjob, live=not is_new)
        if kept is not None:
            return *kept, False
        value = await self.fetch(trainjob)
        if value is None:
            raise RuntimeNotFound(self._resource.kind, trainjob.spec.runtime_ref.name)
        return *self._parsed(value), True

    async def kept(self, trainjob: TrainJob, *, live: bool = True) -> tuple[Blueprint, str] | None:
        """The runtime in a TrainJob's snapshot, and the snapshot's text; none where there is no snapshot."""
        meta = trainjob.metadata
        name = snapshot.snapshot_name_of(meta.name)
        config_map = await self._reader.fetch(CONFIG_MAPS, meta.namespace, name)
        if config_map is None and live:
            # One that the original wrote has no label, and is in no cache.
            config_map = await self._reader.fetch(CONFIG_MAPS, meta.namespace, name, live=True)
        if config_map is None:
            return None
        text = snapshot.content_of(config_map, trainjob)
        digest = snapshot.digest_of(text)
        known = self._recall(digest) or self._unpacked(digest, text)
        snapshot.check_reference(known[0], trainjob)
        return known

    async def kept_policy(self, meta: ObjectMeta, digest: str) -> RunPolicy:
        """The defaults for deadline and time to live in the snapshot of this digest; none where no cache has it."""
        if known := self._recall(digest):
            return known[0].run_policy
        config_map = await self._reader.fetch(CONFIG_MAPS, meta.namespace, snapshot.snapshot_name_of(meta.name))
        text = ((config_map or {}).get("data") or {}).get(snapshot.KEY)
        if not text or snapshot.digest_of(text) != digest:
            return RunPolicy()
        try:
            return self._unpacked(digest, text)[0].run_policy
        except SnapshotInvalid:
            return RunPolicy()

    async def known_policy(self, trainjob: TrainJob) -> RunPolicy:
        """The same without a snapshot that can be used: as it was, where that is remembered, or as the runtime is."""
        if known := self._recall(trainjob.status.runtime_digest or ""):
            return known[0].run_policy
        value = await self.fetch(trainjob)
        try:
            return self._parsed(value)[0].run_policy if value else RunPolicy()
        except Rejected:
            return RunPolicy()

    async def fetch(self, trainjob: TrainJob, *, live: bool = False) -> JsonObject | None:
        """The runtime that a TrainJob refers to; the API server is asked if no cache has it."""
        namespace = trainjob.metadata.namespace if self._resource.namespaced else ""
        name = trainjob.spec.runtime_ref.name
        if live:
            return await self._reader.fetch(self._resource, namespace, name, live=True)
        return await fetch_surely(self._reader, self._resource, namespace, name)

    def read(self, value: JsonObject) -> Blueprint:
        """The runtime in an object; raises Rejected where it is malformed."""
        return self._parsed(value)[0]

    def _parsed(self, value: JsonObject) -> tuple[Blueprint, str]:
        metadata = value["metadata"]
        uid, version = metadata.get("uid"), metadata.get("resourceVersion")
        key = f"{uid}@{version}" if uid and version else ""
        if known := self._recall(key):
            return known
        blueprint = self._checked(value)
        return self._remember(key, blueprint, snapshot.text_of(blueprint))

    def _checked(self, value: JsonObject) -> Blueprint:
        blueprint = read_blueprint(self._resource.kind, value)
        if isinstance(blueprint, list):
            detail = f"the {self._resource.kind} is malformed: {message_of(blueprint)}"
            raise Rejected(Findings([fields.invalid(_REF, value["metadata"].get("name", ""), detail)]))
        return blueprint

    async def check_namespace(self, blueprint: Blueprint, trainjob: TrainJob) -> Findings:
        """Refuse a TrainJob from a namespace that the runtime is not for."""
        selector = blueprint.allowed_namespaces
        if selector is None:
            return Findings()
        name = trainjob.metadata.namespace
        namespace = await fetch_surely(self._reader, NAMESPACES, "", name)
        if namespace is None:
            return Findings(warnings=[f"it is not known whether the namespace {name} may use {blueprint.name}"])
        labels = namespace["metadata"].get("labels")
        # One in a file may have anything for labels.
        if is_selected(labels if isinstance(labels, dict) else {}, selector):
            return Findings()
        return Findings([fields.invalid(_REF, blueprint.name, f"is not for TrainJobs of the namespace {name}")])

    def _unpacked(self, digest: str, text: str) -> tuple[Blueprint, str]:
        """The runtime in the text of a snapshot; one that is refused is not read again."""
        if digest in self._refused:
            raise SnapshotInvalid(self._refused[digest])
        try:
            return self._remember(digest, snapshot.parse_snapshot(text), text)
        except SnapshotInvalid as error:
            self._refused[digest] = error.reason
            _trim(self._refused)
            raise

    def _recall(self, key: str) -> tuple[Blueprint, str] | None:
        known = self._known.pop(key, None)
        if known:
            self._known[key] = known
        return known

    def _remember(self, key: str, blueprint: Blueprint, text: str) -> tuple[Blueprint, str]:
        if key:
            self._known[key] = (blueprint, text)
        _trim(self._known)
        return blueprint, text


def _trim(remembered: dict[str, Any]) -> None:
    """Forget the eldest of too many."""
    if len(remembered) > _KEPT:
        del remembered[next(iter(remembered))]
