"""A runtime as reconciler and webhook use it: both ask the same questions, and get their answers from the same code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import CONFIG_MAPS
from ktrainer.api.trainingruntime import RunPolicy
from ktrainer.framework.findings import Findings
from ktrainer.framework.watch import Watch
from ktrainer.kube.access import Access
from ktrainer.runtime import snapshot
from ktrainer.runtime.assembly import assemble
from ktrainer.runtime.errors import PlanError, Rejected, RuntimeNotFound, SnapshotInvalid
from ktrainer.runtime.plan import Plan
from ktrainer.runtime.source import Source
from ktrainer.runtime.targets import validate_targets
from ktrainer.runtime.validation import validate_parts, validate_processes

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.framework import Framework
    from ktrainer.framework.info import Info
    from ktrainer.framework.reader import Reader
    from ktrainer.framework.workload import WorkloadStatus
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.runtime.blueprint import Blueprint

# The snapshot is created, and never changed.
ACCESS: Final = (Access(CONFIG_MAPS, ("create", "list", "watch")),)


class Runtime:
    """The TrainingRuntimes of a namespace, or the ClusterTrainingRuntimes.

    Holds nothing of any TrainJob; parsed runtimes are kept for as long as they are in use.
    """

    def __init__(self, resource: Resource, framework: Framework, reader: Reader) -> None:
        self.framework = framework
        self._source = Source(resource, reader)

    async def plan(self, trainjob: TrainJob, *, is_new: bool = False) -> Plan:
        """Build all that a TrainJob needs, given what is there; its snapshot decides once there is one.

        A snapshot of a TrainJob that `is_new`, which nobody seems to have worked on, is looked for in the caches only.

        Raises RuntimeNotFound, SnapshotInvalid, and Rejected where the TrainJob does not fit: it may have been created
        before an edit of its runtime, or without a webhook. Raises PluginError, and what the reader raises.
        """
        blueprint, text, lacks_snapshot = await self._source.resolve(trainjob, is_new=is_new)
        findings, info = await self._examine(blueprint, None, trainjob)
        if lacks_snapshot:
            findings.refuse_all()
            findings.add(await self._source.check_namespace(blueprint, trainjob))
        if findings.errors or info is None:
            raise Rejected(findings)
        self.framework.enforce(info, trainjob)
        digest, before = snapshot.digest_of(text), trainjob.status.runtime_digest
        components = [snapshot.build_snapshot(trainjob, text)] if lacks_snapshot else []
        components += await self.framework.build(info, trainjob)
        if lacks_snapshot and before and before != digest:
            findings.warnings.append("the snapshot of the runtime was lost, and the runtime has changed since")
        return Plan(
            components=tuple(components),
            runtime_digest=digest,
            run_policy=blueprint.run_policy,
            sized_job=info.sized.name if info.sized else None,
            nodes=info.sized.count if info.sized else 0,
            waits_for=info.waits_for,
            refused=info.refused,
            warnings=findings.warnings,
        )

    async def validate(self, old: TrainJob | None, new: TrainJob) -> Findings:
        """All that is wrong with a TrainJob that is created, or with `old` updated. Never refuses on a stale view."""
        if new.metadata.is_deleting:
            # What is left to do is to let it go; its runtime may be gone already.
            return Findings()
        if old is not None:
            try:
                kept = await self._source.kept(new)
            except SnapshotInvalid:
                kept = None
            if kept is not None:
                return await self._admit(kept[0], old, new)
        value = await self._source.fetch(new)
        findings = await self._judge(value, old, new)
        if findings.errors and value is not None:
            fresh = await self._source.fetch(new, live=True)
            if fresh is None or _version(fresh) != _version(value):
                findings = await self._judge(fresh, old, new)
        return findings

    async def run_policy(self, trainjob: TrainJob) -> RunPolicy:
        """The runtime's defaults for deadline and time to live; none at all where the runtime cannot be had.

        A snapshot that was spoilt must not free a TrainJob of its deadline: there the runtime itself counts, as it was
        or as it is.
        """
        try:
            return (await self._source.resolve(trainjob))[0].run_policy
        except SnapshotInvalid:
            return await self._source.known_policy(trainjob)
        except PlanError:
            return RunPolicy()

    async def kept_policy(self, meta: ObjectMeta, digest: str) -> RunPolicy:
        """The same for a TrainJob that has finished: as its snapshot of this digest has it, if it is in a cache."""
        return await self._source.kept_policy(meta, digest)

    async def status(self, trainjob: TrainJob) -> WorkloadStatus | None:
        """How the workload is doing; none while there is none."""
        return await self.framework.status(trainjob)

    def watches(self) -> tuple[Watch, ...]:
        """What must be watched beside TrainJobs and runtimes, each once."""
        return tuple(dict.fromkeys((Watch(CONFIG_MAPS, labelled=True), *self.framework.watches())))

    async def _judge(self, value: JsonObject | None, old: TrainJob | None, new: TrainJob) -> Findings:
        if value is None:
            return RuntimeNotFound(new.spec.runtime_ref.kind, new.spec.runtime_ref.name).findings
        try:
            blueprint = self._source.read(value)
        except Rejected as rejected:
            return rejected.findings
        findings = await self._admit(blueprint, old, new)
        if old is None:
            findings.add(await self._source.check_namespace(blueprint, new))
        return findings

    async def _admit(self, blueprint: Blueprint, old: TrainJob | None, new: TrainJob) -> Findings:
        findings, _ = await self._examine(blueprint, old, new)
        findings.refuse_all()
        return findings

    async def _examine(self, blueprint: Blueprint, old: TrainJob | None, new: TrainJob) -> tuple[Findings, Info | None]:
        """All findings at once, and the Info they are about; none where plugins could not make sense of it."""
        findings = Findings(validate_parts(new))
        if blueprint.is_deprecated:
            findings.warnings.append(f"the {blueprint.kind} {blueprint.name} is deprecated, and will be removed")
        if findings.errors:
            return findings, None
        misplaced = validate_targets(blueprint, new)
        findings.errors += [*validate_processes(new), *misplaced]
        info = assemble(blueprint, new, changes=not misplaced)
        if isinstance(info, list):
            findings.errors += info
            info = assemble(blueprint, new, changes=False)
        if isinstance(info, list):
            return findings, None
        findings.add(await self.framework.validate(info, old, new))
        return findings, info


def _version(value: JsonObject) -> str | None:
    version: str | None = value["metadata"].get("resourceVersion")
    return version
