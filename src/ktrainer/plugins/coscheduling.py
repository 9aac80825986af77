"""Coscheduling: the scheduler plugin that starts all pods of a PodGroup at once, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import COSCHEDULING_POD_GROUPS, LIMIT_RANGES, RUNTIME_CLASSES
from ktrainer.framework.component import Component, new_object
from ktrainer.framework.gang import gang_of, gang_spec_of, gang_watches, is_settled
from ktrainer.framework.plugin import ComponentBuilderPlugin, EnforcePodGroupPolicyPlugin, WatchExtensionPlugin
from ktrainer.kube.access import Access

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info
    from ktrainer.framework.watch import Watch

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
        if await is_settled(self._reader, COSCHEDULING_POD_GROUPS, trainjob):
            return []
        gang = gang_of(info)
        group = new_object(COSCHEDULING_POD_GROUPS, trainjob, trainjob.metadata.name)
        group["spec"] = gang_spec_of(gang) | {"scheduleTimeoutSeconds": policy.schedule_timeout_seconds}
        return [Component(COSCHEDULING_POD_GROUPS, group)]

    def watches(self) -> Iterable[Watch]:
        """PodGroups, and what decides on the requests of pods that do not start yet."""
        return gang_watches(COSCHEDULING_POD_GROUPS)
