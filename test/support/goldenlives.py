"""Short lives of TrainJobs of each plugin, and all that is left of them in a form in which two can be compared."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from clusters.stages import RUNS_FOR
from ktrainer.api.resources import (
    API_VERSION,
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBSETS,
    SECRETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    VOLCANO_POD_GROUPS,
)
from support.leftovers import children_in, differences
from support.trail import Trail
from support.workplace import LONG, patched

if TYPE_CHECKING:
    from clusters.api import Api, Object
    from clusters.folder import Folder
    from support.faultproxy.http1 import Request
    from support.pluginlives import PluginCase

NAME = "train"
RUN_SECONDS = 1
"""How long the pods run that everybody waits for: long enough to be seen."""

_NOT_OURS = {"kube-root-ca.crt"}
_MADE = (JOBSETS, CONFIG_MAPS, SECRETS, COSCHEDULING_POD_GROUPS, VOLCANO_POD_GROUPS, HORIZONTAL_POD_AUTOSCALERS)
_PASSING = ("startTime", "completionTime")


def trainjob_of(case: PluginCase, name: str, seconds: float) -> Object:
    """A TrainJob for the runtime of a plugin; the pods that everybody waits for end after so many seconds."""
    (patch,) = patched({RUNS_FOR: LONG}, *case.jobs)
    first = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    first["template"]["spec"]["template"]["metadata"] = {"annotations": {RUNS_FOR: f"{seconds:.1f}s"}}
    spec = {
        "runtimeRef": {"name": case.runtime("")["metadata"]["name"], "kind": TRAINING_RUNTIMES.kind},
        "trainer": {"numNodes": case.nodes, **case.trainer},
        "runtimePatches": [patch],
    }
    return {"apiVersion": API_VERSION, "kind": TRAINJOBS.kind, "metadata": {"name": name}, "spec": spec}


def made_twice(trail: Trail) -> list[str]:
    """What was created more than once, by the audit log; and keys that were written a second time."""
    made: Counter[str] = Counter()
    # Both kinds of PodGroups are called the same.
    for plural in {resource.plural for resource in _MADE}:
        for write in trail.writes(plural):
            if write.is_creation or (write.is_success and plural == "secrets" and write.verb != "delete"):
                made[f"{plural}/{write.name}"] += 1
    return [name for name, times in made.items() if times > 1]


def departures(golden: Object, left: Object) -> Object:
    """In what two lives differ that should have come to the same."""
    found: Object = differences(golden["children"], left["children"])
    one, other = ({"finalizers": each["finalizers"], **each["status"]} for each in (golden, left))
    pairs = {name: (one.get(name), other.get(name)) for name in {*one, *other}}
    return {**found, **{name: pair for name, pair in pairs.items() if pair[0] != pair[1]}}


class GoldenLife:
    """The life of one TrainJob, alone in its namespace; every method blocks."""

    def __init__(self, cluster: Folder, admin: Api, case: PluginCase, namespace: str) -> None:
        self._admin = admin
        self._case = case
        self._namespace = namespace
        self._trail = Trail(cluster, namespace)

    def begin(self) -> None:
        """Create runtime and TrainJob, which runs to its end by itself."""
        self._admin.create(TRAINING_RUNTIMES.path(self._namespace), self._case.runtime(""))
        self._admin.create(TRAINJOBS.path(self._namespace), trainjob_of(self._case, NAME, RUN_SECONDS))

    @property
    def state(self) -> str:
        """The state of the TrainJob, empty before it has one."""
        state: str = self._trainjob().get("status", {}).get("state", "")
        return state

    def left(self) -> Object:
        """All that there is: of the TrainJob and its runtime what we write, and the children."""
        status = {key: value for key, value in self._trainjob().get("status", {}).items() if key not in _PASSING}
        conditions = [{**each, "lastTransitionTime": "-"} for each in status.get("conditions", [])]
        # The other jobs are stopped at the end: how many of their pods were left when it was told is chance.
        stopped = self._case.jobs[1:]
        counts = [{"name": each["name"]} if each["name"] in stopped else each for each in status.get("jobsStatus", [])]
        children = children_in(self._admin, self._namespace).get(NAME, {})
        (runtime,) = self._admin.get(TRAINING_RUNTIMES.path(self._namespace))["items"]
        left = {
            "status": {**status, "conditions": conditions, "jobsStatus": counts},
            "finalizers": runtime["metadata"].get("finalizers", []),
            "children": children,
        }
        # Addresses and audiences have the namespace in them.
        anywhere: Object = json.loads(json.dumps(left).replace(self._namespace, "NAMESPACE"))
        return anywhere

    def orphans(self) -> list[str]:
        """What somebody made in the namespace and this very TrainJob does not control."""
        uid = self._trainjob()["metadata"]["uid"]
        found = [
            item["metadata"] for resource in _MADE for item in self._admin.get(resource.path(self._namespace))["items"]
        ]
        return [
            each["name"]
            for each in found
            if each["name"] not in _NOT_OURS
            and not any(owner.get("controller") and owner["uid"] == uid for owner in each.get("ownerReferences", ()))
        ]

    def made_twice(self) -> list[str]:
        """What was created more than once, by the audit log; and keys that were written a second time."""
        return made_twice(self._trail)

    def is_write(self, request: Request) -> bool:
        """Whether a request writes anything of this life; events aside."""
        return request.is_write and f"/namespaces/{self._namespace}/" in request.path and "/events" not in request.path

    def _trainjob(self) -> Object:
        return self._admin.get(TRAINJOBS.path(self._namespace, NAME))
