"""Objects of our kinds for tests, and cases: objects that are right, or wrong in one way each.

The models and a real API server must agree on the cases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ktrainer.api.resources import API_VERSION, CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS

if TYPE_CHECKING:
    from ktrainer.kube.identity import Resource

Object = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One object, and what is wrong with it."""

    name: str
    """What this case is, in words."""
    resource: Resource
    item: Object
    refused: str | None = None
    """The path of the field that is refused; None where the object is right."""
    by_schema_only: bool = False
    """Whether only an API server looks that deep: the field is in a part that the models keep as plain JSON."""

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}".replace(" ", "-")


def trainjob(name: str = "job", /, **spec: Any) -> Object:
    """A TrainJob that refers to a runtime, with more fields in its spec."""
    return _item(TRAINJOBS, name, {"runtimeRef": {"name": "torch"}, **spec})


def runtime(**spec: Any) -> Object:
    """A TrainingRuntime with a template, with more fields in its spec."""
    return _item(TRAINING_RUNTIMES, "runtime", {"template": {"spec": {"replicatedJobs": []}}, **spec})


def cluster_runtime(**spec: Any) -> Object:
    """A ClusterTrainingRuntime with a template, with more fields in its spec."""
    return _item(CLUSTER_TRAINING_RUNTIMES, "runtime", {"template": {"spec": {"replicatedJobs": []}}, **spec})


def jobset(**spec: Any) -> Object:
    """A TrainingRuntime whose template's JobSet has these fields."""
    return runtime(template={"spec": {"replicatedJobs": [replicated_job()], **spec}})


def replicated_job(name: str = "node", /, **fields: Any) -> Object:
    """A replicated job with one container."""
    pod = {"containers": [{"name": "node", "image": "registry.example/train"}]}
    return {"name": name, "template": {"spec": {"template": {"spec": pod}}}, **fields}


def patch(manager: str = "acme.io/one", /, **pod: Any) -> Object:
    """A runtime patch that changes these fields of the pods of the job `node`."""
    job = {"name": "node", "template": {"spec": {"template": {"spec": pod}}}}
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [job]}}}}


def named(count: int, **fields: Any) -> list[Object]:
    """As many items with different names."""
    return [{"name": f"n{number}", **fields} for number in range(count)]


def _item(resource: Resource, name: str, spec: Object) -> Object:
    return {"apiVersion": API_VERSION, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
