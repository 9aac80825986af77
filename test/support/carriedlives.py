"""TrainJobs that live through a change of the manager: each in a state of its own when the change comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.besidecases import create, lasting
from support.leftovers import children_in, identity_of
from support.training import container, job, runtime
from support.waiting import Waiter, has_condition

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.api import Api, Object
    from clusters.folder import Folder

_GROUP = "/apis/trainer.kubeflow.org/v1alpha1/namespaces"
_STOPS = {"failurePolicy": {"maxRestarts": 0}}


@dataclass(frozen=True)
class Life:
    """A TrainJob, and the state in which the change finds it."""

    runtime: str
    state: str
    """Running, Suspended, Complete or Failed."""


LIVES = {
    "running": Life("torch", "Running"),
    "running-mpi": Life("mpi", "Running"),
    "running-gang": Life("gang", "Running"),
    "running-flux": Life("flux", "Running"),
    "suspended": Life("torch", "Suspended"),
    "suspended-mpi": Life("mpi", "Suspended"),
    "suspended-gang": Life("gang", "Suspended"),
    "complete": Life("torch", "Complete"),
    "complete-mpi": Life("mpi", "Complete"),
    "failed": Life("torch", "Failed"),
}


def _node() -> Object:
    """Two processors, so that a gang asks for something; a pod that fails fails the whole."""
    node = job("node", "trainer", container(resources={"requests": {"cpu": "2"}}))
    node["template"]["spec"]["backoffLimit"] = 0
    return node


_RUNTIMES = {
    "torch": runtime(_node(), template=_STOPS, mlPolicy={"torch": {}}),
    "mpi": runtime(job("launcher"), job("node", None), mlPolicy={"mpi": {"mpiImplementation": "OpenMPI"}}),
    "gang": runtime(_node(), template=_STOPS, mlPolicy={"torch": {}}, podGroupPolicy={"coscheduling": {}}),
    "flux": runtime(job(), mlPolicy={"flux": {}}),
}


@dataclass(frozen=True)
class Look:
    """A TrainJob and what belongs to it, at one time."""

    trainjob: Object
    children: dict[str, Object]
    """What must stay as it is of each object that it controls."""
    pods: dict[str, str]
    """The pods: name to uid, beginning and restarts."""

    def changes(self, later: Look) -> set[str]:
        """The objects that are not there any more, or not as they were, or new."""
        names = {*self.children, *later.children}
        return {name for name in names if self.children.get(name) != later.children.get(name)}

    @property
    def ends(self) -> list[str]:
        """The conditions that say that it has ended."""
        return [each for each in ("Complete", "Failed") if has_condition(self.trainjob, each)]


class Lives:
    """All lives, in one namespace of a cluster."""

    def __init__(self, api: Api, namespace: str, folder: Folder) -> None:
        self._api = api
        self._namespace = namespace
        self._waiter = Waiter(api, namespace, folder)

    def begin(self) -> None:
        """Create all TrainJobs, and bring each to its state."""
        for name, value in _RUNTIMES.items():
            metadata = {"name": name}
            self._create("trainingruntimes", lasting({**value, "kind": "TrainingRuntime", "metadata": metadata}))
        for name, life in LIVES.items():
            self._create("trainjobs", _trainjob(name, life))
        for name, life in LIVES.items():
            self._until(name, is_suspended if life.state == "Suspended" else is_running, "it has begun")
        for end, phase in (("Complete", "Succeeded"), ("Failed", "Failed")):
            ended = [name for name, life in LIVES.items() if life.state == end]
            for name in ended:
                self._end_pods(name, phase)
            self._until_ended(ended, end)

    def wait_all(self, condition: Callable[[Object], bool], what: str) -> None:
        """Wait until a condition holds for every TrainJob."""
        for name in LIVES:
            self._until(name, condition, what)

    def finish(self) -> None:
        """Resume what is suspended, and let all pods that run succeed."""
        alive = [name for name, life in LIVES.items() if life.state in {"Running", "Suspended"}]
        for name in alive:
            if LIVES[name].state == "Suspended":
                self._api.merge(self._path(name), {"spec": {"suspend": False}})
        for name in alive:
            self._until(name, is_running, "it runs")
            self._end_pods(name, "Succeeded")
        self._until_ended(alive, "Complete")

    def look(self) -> dict[str, Look]:
        """All TrainJobs as they are now."""
        children = children_in(self._api, self._namespace)
        return {
            name: Look(
                self._api.get(self._path(name)),
                {key: identity_of(child) for key, child in children.get(name, {}).items()},
                {pod["metadata"]["name"]: _fate_of(pod) for pod in self._pods(name)},
            )
            for name in LIVES
        }

    def _until(self, name: str, condition: Callable[[Object], bool], what: str) -> None:
        self._waiter.until(self._path(name), condition, f"{name}: {what}")

    def _until_ended(self, names: list[str], end: str) -> None:
        for name in names:
            self._until(name, lambda item: has_condition(item, end), f"it is {end}")

    def _end_pods(self, name: str, phase: str) -> None:
        for pod in self._pods(name):
            path = f"/api/v1/namespaces/{self._namespace}/pods/{pod['metadata']['name']}/status"
            self._api.merge(path, {"status": {"phase": phase}})

    def _pods(self, name: str) -> list[Object]:
        selector = f"labelSelector=jobset.sigs.k8s.io/jobset-name%3D{name}"
        pods: list[Object] = self._api.get(f"/api/v1/namespaces/{self._namespace}/pods?{selector}")["items"]
        return pods

    def _create(self, plural: str, item: Object) -> None:
        create(self._api, f"{_GROUP}/{self._namespace}/{plural}", item)

    def _path(self, name: str) -> str:
        return f"{_GROUP}/{self._namespace}/trainjobs/{name}"


def is_running(trainjob: Object) -> bool:
    """Whether all of its jobs run, by what either manager tells."""
    jobs = trainjob.get("status", {}).get("jobsStatus", [])
    return bool(jobs) and all(each.get("ready") == 1 for each in jobs)


def is_suspended(trainjob: Object) -> bool:
    """Whether it waits to be resumed, and its JobSet is there."""
    return has_condition(trainjob, "Suspended") and bool(trainjob["status"].get("jobsStatus"))


def _trainjob(name: str, life: Life) -> Object:
    reference = {"name": life.runtime, "kind": "TrainingRuntime"}
    trainer = {"numNodes": 2, "command": ["train"]}
    spec = {"runtimeRef": reference, "trainer": trainer, "suspend": life.state == "Suspended"}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": spec,
    }


def _fate_of(pod: Object) -> str:
    restarts = [each["restartCount"] for each in pod["status"].get("containerStatuses", ())]
    return f"{pod['metadata']['uid']} {pod['status'].get('startTime')} {restarts}"
