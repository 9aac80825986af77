"""Coscheduling: the scheduler plugin that starts all pods of a PodGroup at once, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import COSCHEDULING_POD_GROUPS, LIMIT_RANGES, RUNTIME_CLASSES
from ktrainer.framework.component import Component, is_controlled, new_object
from ktrainer.framework.gang import gang_of, gang_spec_of
from ktrainer.framework.plugin import ComponentBuilderPlugin, EnforcePodGroupPolicyPlugin, WatchExtensionPlugin
from ktrainer.framework.watch import Concerns, Watch
from ktrainer.kube.access import Access

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info

ACCESS: Final = (
    Access(COSCHEDULING_POD_GROUPS, ("list", "watch", "create", "patch")),
    Access(LIMIT_RANGES, ("list", "watch")),
    Access(RUNTIME_CLASSES, ("list", "watch")),
)

POD_GROUP_LABEL: Final = "scheduling.x-k8s.io/pod-group"


class Coscheduling(EnforcePodGroupPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin):
    """Sets up runtimes with the policy `coscheduling`."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Looks for a PodGroup that is there already."""
        self._reader = dependencies.reader

    def enforce_pod_group_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Label the pods of the gang."""
        if info.pod_group_policy and info.pod_group_policy.coscheduling:
            info.pod_labels[POD_GROUP_LABEL] = trainjob.metadata.name

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build the PodGroup; one that is there changes only while the TrainJob is suspended."""
        policy = info.pod_group_policy.coscheduling if info.pod_group_policy else None
        if policy is None:
            return []
        meta = trainjob.metadata
        present = await self._reader.fetch(COSCHEDULING_POD_GROUPS, meta.namespace, meta.name)
        if not trainjob.spec.suspend and present and is_controlled(present, trainjob):
            return []
        gang = gang_of(info)
        group = new_object(COSCHEDULING_POD_GROUPS, trainjob, meta.name)
        group["spec"] = gang_spec_of(gang) | {"scheduleTimeoutSeconds": policy.schedule_timeout_seconds}
        return [Component(COSCHEDULING_POD_GROUPS, group)]

    def watches(self) -> Iterable[Watch]:
        """PodGroups, and what decides on the requests of pods that do not start yet."""
        yield Watch(COSCHEDULING_POD_GROUPS, optional=True)
        yield Watch(LIMIT_RANGES, Concerns.SUSPENDED_IN_NAMESPACE)
        yield Watch(RUNTIME_CLASSES, Concerns.SUSPENDED_WITH_RUNTIME_CLASS)
