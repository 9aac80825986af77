"""A namespace of a real cluster in which TrainJobs live: what people, nodes and the JobSet controller do to them there.

Where a runtime's JobSets are managed by somebody else (`unattended`), the JobSet controller leaves them alone, and the
test reports in its place: what is told of a JobSet, and when, is then the test's to decide.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
import yaml

from clusters.api import Refused
from clusters.stages import EXIT_CODE, RUNS_FOR
from ktrainer.api.resources import API_VERSION, JOBSETS, PODS, TRAINING_RUNTIMES, TRAINJOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.api import Api, Object
    from ktrainer.kube.identity import Resource
    from support.waiting import Waiter

LONG = "600s"
"""Longer than any test: such pods end when they are told to."""

_SHIPPED = Path(__file__).parents[2] / "config" / "runtimes"


def torch_runtime(name: str = "torch", **template: Any) -> Object:
    """The shipped runtime for torch as a TrainingRuntime; a pod that fails fails all. `template` is more of it."""
    runtime: Object = yaml.safe_load((_SHIPPED / "torch-distributed.yaml").read_text())
    spec = runtime["spec"]["template"]["spec"]
    spec |= {"failurePolicy": {"maxRestarts": 0}, **template}
    spec["replicatedJobs"][0]["template"]["spec"]["backoffLimit"] = 0
    return {**runtime, "kind": "TrainingRuntime", "metadata": {"name": name}}


def unattended(name: str = "unattended", **template: Any) -> Object:
    """A runtime whose JobSets nobody attends to but the test."""
    return torch_runtime(name, managedBy="test.example/hand", **template)


def elastic_runtime(**policy: Any) -> Object:
    """A runtime for one to four nodes; `policy` is more of its policy."""
    runtime = torch_runtime("elastic")
    runtime["spec"]["mlPolicy"] = {"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 4, **policy}}}
    return runtime


def patched(annotations: dict[str, str], *jobs: str) -> list[Object]:
    """Runtime patches that annotate the pods of some jobs, by default of the job `node`."""
    changes = [
        {"name": job, "template": {"spec": {"template": {"metadata": {"annotations": annotations}}}}}
        for job in jobs or ("node",)
    ]
    spec = {"template": {"spec": {"replicatedJobs": changes}}}
    return [{"manager": "test.example/pods", "trainingRuntimeSpec": spec}]


def states_of(trainjob: Object) -> dict[str, str]:
    """The conditions of a TrainJob: type to status and reason."""
    conditions = trainjob.get("status", {}).get("conditions", [])
    return {each["type"]: f"{each['status']} {each['reason']}" for each in conditions}


def message_of(trainjob: Object, condition: str) -> str:
    """What a condition says in words."""
    found = [each["message"] for each in trainjob["status"]["conditions"] if each["type"] == condition]
    return str(found[0])


@dataclass(frozen=True)
class Workplace:
    """The namespace of one test. The TrainJob is called `train` where no name is given."""

    admin: Api
    waiter: Waiter

    @property
    def namespace(self) -> str:
        """Its name."""
        return self.waiter.namespace

    def path(self, resource: Resource, name: str = "", subresource: str = "") -> str:
        """Where an object of the namespace is, or all of a kind."""
        return resource.path(self.namespace, name, subresource)

    def add_runtime(self, runtime: Object) -> None:
        """Create a TrainingRuntime."""
        self.admin.create(self.path(TRAINING_RUNTIMES), runtime)

    def submit(
        self, name: str = "train", *, runtime: str = "torch", pods: dict[str, str] | None = None, **spec: Any
    ) -> Object:
        """Create a TrainJob of two nodes; `pods` are annotations that tell the fake nodes what to do with its pods."""
        given: Object = {
            "runtimeRef": {"name": runtime, "kind": "TrainingRuntime"},
            "trainer": {"numNodes": 2},
            "runtimePatches": patched({RUNS_FOR: LONG, **(pods or {})}),
            **spec,
        }
        body = {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": name}, "spec": given}
        return self.admin.create(self.path(TRAINJOBS), body)

    def trainjob(self, name: str = "train") -> Object:
        """A TrainJob as it is now."""
        return self.admin.get(self.path(TRAINJOBS, name))

    def jobset(self, name: str = "train") -> Object:
        """The JobSet of a TrainJob as it is now."""
        return self.admin.get(self.path(JOBSETS, name))

    def change(self, name: str = "train", **spec: Any) -> Object:
        """Change the spec of a TrainJob."""
        return self.admin.merge(self.path(TRAINJOBS, name), {"spec": spec})

    def until(self, condition: Callable[[Object], bool], what: str, name: str = "train") -> Object:
        """Wait until something holds for a TrainJob, and return it."""
        return self.waiter.until(self.path(TRAINJOBS, name), condition, what)

    def until_state(self, state: str, name: str = "train") -> Object:
        """Wait until a TrainJob is in a state, and return it."""
        return self.until(lambda job: job.get("status", {}).get("state") == state, f"{name} is {state}", name)

    def until_reason(self, condition: str, expected: str, name: str = "train") -> Object:
        """Wait until a condition of a TrainJob has a status and a reason, and return the TrainJob."""
        return self.until(
            lambda job: states_of(job).get(condition) == expected, f"{condition} of {name} is {expected}", name
        )

    def until_jobset(self, name: str = "train") -> Object:
        """Wait until a TrainJob has its JobSet, and return that."""
        return self.waiter.until(self.path(JOBSETS, name), lambda _: True, f"{name} has a JobSet")

    def has(self, resource: Resource, name: str = "train") -> bool:
        """Whether there is such an object."""
        try:
            self.admin.get(self.path(resource, name))
        except Refused as refusal:
            if refusal.code != 404:
                raise
            return False
        return True

    def until_gone(self, resource: Resource, name: str = "train") -> None:
        """Wait until there is no such object."""
        self.waiter.until_gone(self.path(resource, name), f"the {resource.kind} {name} is gone")

    def pods(self, name: str = "train", job: str = "node") -> list[Object]:
        """The pods of a TrainJob's job that are not on their way out."""
        chosen = f"jobset.sigs.k8s.io/jobset-name={name},jobset.sigs.k8s.io/replicatedjob-name={job}"
        found = self.admin.get(f"{self.path(PODS)}?labelSelector={quote(chosen)}")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def end_pods(self, name: str = "train", job: str = "node", *, code: int = 0) -> None:
        """Let the pods of a job end now, with an exit code."""
        annotations = {RUNS_FOR: "0s", **({EXIT_CODE: str(code)} if code else {})}
        for pod in self.pods(name, job):
            self.admin.merge(self.path(PODS, pod["metadata"]["name"]), {"metadata": {"annotations": annotations}})

    def report(self, name: str = "train", *, end: str = "", **counts: int) -> None:
        """Report for an unattended JobSet: the counts of the job `node`, and an end (Completed or Failed)."""
        jobs = [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0, **counts}]
        status: Object = {"replicatedJobsStatus": jobs}
        if end:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            words = {"status": "True", "reason": "ByHand", "message": "told by the test", "lastTransitionTime": now}
            status["conditions"] = [{"type": end, **words}]
        self.admin.merge(self.path(JOBSETS, name, "status"), {"status": status})

    def events(self, reason: str, name: str = "train") -> list[Object]:
        """The events about a TrainJob for a reason."""
        found = self.admin.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
        return [each for each in found if each.get("reason") == reason and each["regarding"]["name"] == name]


@pytest.fixture
def workplace(admin: Api, waiter: Waiter) -> Workplace:
    """A namespace with the runtime `torch`."""
    made = Workplace(admin, waiter)
    made.add_runtime(torch_runtime())
    return made
