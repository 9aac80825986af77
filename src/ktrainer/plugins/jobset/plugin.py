"""The plugin that makes a JobSet of what all others have decided. It cannot be disabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import Ancestor
from ktrainer.api.resources import JOBSETS
from ktrainer.framework.component import is_controlled
from ktrainer.framework.findings import Findings
from ktrainer.framework.gang import gang_of
from ktrainer.framework.plugin import (
    ComponentBuilderPlugin,
    CustomValidationPlugin,
    EnforcePodSpecPlugin,
    PreComponentBuilderPlugin,
    TrainJobStatusPlugin,
    WatchExtensionPlugin,
)
from ktrainer.framework.watch import Watch
from ktrainer.kube.access import Access
from ktrainer.plugins.jobset import podspec, validation
from ktrainer.plugins.jobset.build import build_jobset, decide_write
from ktrainer.plugins.jobset.status import status_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.component import Component
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info
    from ktrainer.framework.workload import WorkloadStatus
    from ktrainer.kube.jsonvalue import JsonObject

ACCESS: Final = (Access(JOBSETS, ("list", "watch", "create", "patch")),)

_ANCESTORS = frozenset(Ancestor)


class JobSet(
    CustomValidationPlugin,
    EnforcePodSpecPlugin,
    PreComponentBuilderPlugin,
    ComponentBuilderPlugin,
    TrainJobStatusPlugin,
    WatchExtensionPlugin,
):
    """Builds the JobSet of a TrainJob, and reads its status."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Looks for the JobSet that is there."""
        self._reader = dependencies.reader

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Refuse what the runtime's jobs cannot do, and changes that running pods could not follow."""
        errors = [*validation.validate_initializers(info, new), *validation.validate_managers(new)]
        if old is not None:
            errors += validation.validate_update(info, old, new)
        return Findings(errors, validation.warn_of_names(info, new))

    def enforce_pod_spec(self, info: Info, trainjob: TrainJob) -> None:
        """Put the TrainJob's trainer and initializers into the pod templates, and the gang's marks on its own."""
        podspec.set_initializers(info, trainjob)
        podspec.set_trainer(info, trainjob)
        for pods in gang_of(info) if info.pod_labels or info.pod_annotations else ():
            metadata = pods.pod_template.setdefault("metadata", {})
            for field, marks in (("labels", info.pod_labels), ("annotations", info.pod_annotations)):
                if marks:
                    metadata[field] = {**(metadata.get(field) or {}), **marks}

    def pre_build(self, info: Info, trainjob: TrainJob) -> None:
        """Put the counts into the template."""
        for pods in info.pod_sets:
            if pods.ancestor in _ANCESTORS:
                pods.job["replicas"] = 1
            pods.job["template"]["spec"] |= {"parallelism": pods.count, "completions": pods.count}

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build the JobSet, or what of it can change while its pods run."""
        present = await self._fetch(trainjob)
        return decide_write(info, trainjob, build_jobset(info, trainjob), present)

    async def status(self, trainjob: TrainJob) -> WorkloadStatus | None:
        """How the JobSet is doing; none while there is none."""
        jobset = await self._fetch(trainjob)
        return status_of(jobset) if jobset else None

    async def _fetch(self, trainjob: TrainJob) -> JsonObject | None:
        """The TrainJob's own JobSet. One of somebody else is not ours to look at; whoever writes ours will meet it."""
        meta = trainjob.metadata
        jobset = await self._reader.fetch(JOBSETS, meta.namespace, meta.name)
        return jobset if jobset and is_controlled(jobset, trainjob.metadata.uid) else None

    def watches(self) -> Iterable[Watch]:
        """JobSets; those that no TrainJob owns are dropped on arrival."""
        yield Watch(JOBSETS)
