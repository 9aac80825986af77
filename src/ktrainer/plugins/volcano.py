"""Volcano: the scheduler that starts all pods of a PodGroup at once, with queues, priorities and network topology."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import LIMIT_RANGES, PRIORITY_CLASSES, RUNTIME_CLASSES, VOLCANO_POD_GROUPS
from ktrainer.framework.component import Component, new_object
from ktrainer.framework.findings import Findings
from ktrainer.framework.gang import gang_of, gang_spec_of, gang_watches, is_settled
from ktrainer.framework.plugin import (
    ComponentBuilderPlugin,
    CustomValidationPlugin,
    EnforcePodGroupPolicyPlugin,
    WatchExtensionPlugin,
)
from ktrainer.framework.reader import fetch_surely
from ktrainer.kube import fields
from ktrainer.kube.access import Access
from ktrainer.kube.fields import Path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainingruntime import VolcanoPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info
    from ktrainer.framework.podset import PodSet
    from ktrainer.framework.watch import Watch
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject

ACCESS: Final = (
    Access(VOLCANO_POD_GROUPS, ("list", "watch", "create", "patch")),
    Access(LIMIT_RANGES, ("list", "watch")),
    Access(RUNTIME_CLASSES, ("list", "watch")),
    Access(PRIORITY_CLASSES, ("get",)),
)

SCHEDULER: Final = "volcano"
QUEUE_ANNOTATION: Final = "scheduling.volcano.sh/queue-name"
GROUP_ANNOTATION: Final = "scheduling.k8s.io/group-name"
BUILT_IN_PRIORITIES: Final = frozenset({"system-cluster-critical", "system-node-critical"})

_PRIORITY_PATH: Final = Path("spec.templateSpec.priorityClassName")


class Volcano(CustomValidationPlugin, EnforcePodGroupPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin):
    """Sets up runtimes with the policy `volcano`."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Looks for priority classes, and for a PodGroup that is there already."""
        self._reader = dependencies.reader

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Refuse an empty queue and priorities that do not exist; warn of pods that another scheduler gets."""
        if _policy(info) is None:
            return Findings()
        findings = Findings()
        if info.annotations.get(QUEUE_ANNOTATION) == "":
            path = Path("spec.annotations").key(QUEUE_ANNOTATION)
            findings.errors.append(fields.invalid(path, "", "a queue must have a name"))
        findings.errors += await self._check_priorities(info)
        for pods in gang_of(info):
            if pods.pod_spec.get("schedulerName") != SCHEDULER:
                findings.warnings.append(
                    f"the pods of the job {pods.name} are in a Volcano gang, but their schedulerName is not {SCHEDULER}"
                )
        return findings

    async def _check_priorities(self, info: Info) -> ErrorList:
        errors: ErrorList = []
        for name in dict.fromkeys(filter(None, map(_priority, info.pod_sets))):
            if name in BUILT_IN_PRIORITIES or await fetch_surely(self._reader, PRIORITY_CLASSES, "", name):
                continue
            errors.append(fields.invalid(_PRIORITY_PATH, name, "there is no such PriorityClass"))
        if len(wanted := _priorities(info)) > 1:
            errors.append(fields.invalid(_PRIORITY_PATH, wanted, "the jobs of one gang must have the same priority"))
        return errors

    def enforce_pod_group_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Annotate the pods of the gang."""
        if _policy(info):
            info.pod_annotations[GROUP_ANNOTATION] = trainjob.metadata.name

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build the PodGroup; one that is there changes only while the TrainJob is suspended."""
        policy = _policy(info)
        if policy is None:
            return []
        if await is_settled(self._reader, VOLCANO_POD_GROUPS, trainjob):
            return []
        group = new_object(VOLCANO_POD_GROUPS, trainjob, trainjob.metadata.name)
        group["spec"] = _group_spec(info, policy)
        return [Component(VOLCANO_POD_GROUPS, group)]

    def watches(self) -> Iterable[Watch]:
        """PodGroups, and what decides on the requests of pods that do not start yet."""
        return gang_watches(VOLCANO_POD_GROUPS)


def _group_spec(info: Info, policy: VolcanoPolicy) -> JsonObject:
    spec = gang_spec_of(gang_of(info))
    if queue := info.annotations.get(QUEUE_ANNOTATION):
        spec["queue"] = queue
    if priorities := _priorities(info):
        spec["priorityClassName"] = priorities[-1]
    if topology := policy.network_topology:
        spec["networkTopology"] = {
            "mode": topology.mode.value,
            "highestTierAllowed": topology.highest_tier_allowed,
        }
    return spec


def _policy(info: Info) -> VolcanoPolicy | None:
    return info.pod_group_policy.volcano if info.pod_group_policy else None


def _priority(pods: PodSet) -> str | None:
    priority: str | None = pods.pod_spec.get("priorityClassName")
    return priority


def _priorities(info: Info) -> list[str]:
    """The different priority classes in the gang, in the order of its jobs."""
    return list(dict.fromkeys(filter(None, map(_priority, gang_of(info)))))
