"""Which pods must be scheduled together.

A gang is what starts at once with the nodes of the training. A job that waits for another, or that another waits for,
is not in it: the scheduler would hold all of them back for pods that cannot come yet.

Departs: the original counts every job, so that a gang with an initializer or a launcher that waits never fills.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.resources import LIMIT_RANGES, RUNTIME_CLASSES
from ktrainer.framework.component import is_controlled
from ktrainer.framework.resources import Requests, sum_of
from ktrainer.framework.watch import Concerns, Watch

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.info import Info
    from ktrainer.framework.podset import PodSet
    from ktrainer.framework.reader import Reader
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject


def gang_of(info: Info) -> list[PodSet]:
    """The pods that start together with those that `numNodes` counts; all pods where nothing waits for anything."""
    sized = info.sized
    if sized is None:
        return info.pod_sets
    if _starts_in_order(info.template):
        return [sized]
    wave = _awaited(sized)
    return [pods for pods in info.pod_sets if _awaited(pods) == wave]


def gang_spec_of(gang: list[PodSet]) -> JsonObject:
    """What every PodGroup says of a gang: how many pods it has, and what they ask of the cluster, to the last bit."""
    total: Requests = {}
    for pods in gang:
        sum_of(pods.requests, pods.count, total)
    return {
        "minMember": sum(pods.count for pods in gang),
        "minResources": {name: str(quantity) for name, quantity in total.items()},
    }


async def is_settled(reader: Reader, group: Resource, trainjob: TrainJob) -> bool:
    """Whether a TrainJob that is not suspended has its PodGroup: one that is there changes only while it is."""
    meta = trainjob.metadata
    present = await reader.fetch(group, meta.namespace, meta.name)
    return not trainjob.spec.suspend and present is not None and is_controlled(present, meta.uid)


def gang_watches(group: Resource) -> tuple[Watch, ...]:
    """The PodGroups of a scheduler, and what decides on the requests of pods that do not start yet."""
    return (
        Watch(group, optional=True),
        Watch(LIMIT_RANGES, Concerns.SUSPENDED_IN_NAMESPACE),
        Watch(RUNTIME_CLASSES, Concerns.SUSPENDED_WITH_RUNTIME_CLASS),
    )


def _starts_in_order(template: JsonObject) -> bool:
    policy = template.get("startupPolicy") or {}
    return policy.get("startupPolicyOrder") == "InOrder"


def _awaited(pods: PodSet) -> frozenset[tuple[str | None, str | None]]:
    """What must have happened before the job starts: jobs of the same wave wait for the same."""
    waits = pods.job.get("dependsOn") or ()
    return frozenset((wait.get("name"), wait.get("status")) for wait in waits)
