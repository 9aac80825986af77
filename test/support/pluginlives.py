"""A runtime for each plugin, made for fake nodes, and what is special about the TrainJobs that use it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ktrainer.api.resources import (
    API_VERSION,
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    HORIZONTAL_POD_AUTOSCALERS,
    SECRETS,
    TRAINING_RUNTIMES,
    VOLCANO_POD_GROUPS,
)
from support.training import container, initializer, job, runtime

if TYPE_CHECKING:
    from clusters.api import Object
    from ktrainer.kube.identity import Resource

_METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


@dataclass(frozen=True)
class PluginCase:
    """One plugin."""

    name: str
    spec: Object
    """The spec of a runtime."""
    mark: str
    """What is in each of its pods and would not be without the plugin."""
    nodes: int = 2
    trainer: Object = field(default_factory=dict)
    """What a TrainJob says about the trainer, beside the number of nodes."""
    made: tuple[tuple[Resource, str], ...] = ()
    """What is made for a TrainJob beside JobSet and snapshot: kinds, and what follows the TrainJob's name in theirs."""
    released: Resource | None = None
    """What of that does not outlive the end."""
    jobs: tuple[str, ...] = ("node",)
    """The jobs whose pods run until they are told to end; the first is the one whose end is that of all."""
    suffix: str = ""
    """What the name of a runtime must end with, after a part without hyphens."""

    def runtime(self, life: str) -> Object:
        """A runtime for one life."""
        name = f"{self.name}{life}{self.suffix}"
        return {
            "apiVersion": API_VERSION,
            "kind": TRAINING_RUNTIMES.kind,
            "metadata": {"name": name},
            "spec": self.spec,
        }


def _spec(*jobs: Object, template: Object | None = None, **spec: Any) -> Object:
    """The spec of a runtime in which nothing is tried twice."""
    made: Object = runtime(*jobs, template={"failurePolicy": {"maxRestarts": 0}, **(template or {})}, **spec)["spec"]
    for each in made["template"]["spec"]["replicatedJobs"]:
        each["template"]["spec"]["backoffLimit"] = 0
    return made


def _initializer(name: str) -> Object:
    made = initializer(name)
    made["template"]["spec"]["template"]["spec"]["volumes"] = [{"name": "initializer", "emptyDir": {}}]
    return made


PLUGINS = (
    PluginCase("plainml", _spec(mlPolicy={"numNodes": 1}), mark="node"),
    PluginCase("torch", _spec(mlPolicy={"torch": {}}), mark="PET_NODE_RANK"),
    PluginCase(
        "torchtune",
        _spec(
            _initializer("dataset-initializer"),
            _initializer("model-initializer"),
            job(
                "node",
                "trainer",
                container(
                    command=["tune", "run", "output_dir=/workspace/output"],
                    resources={"limits": {"nvidia.com/gpu": 2}},
                ),
                dependsOn=[
                    {"name": "dataset-initializer", "status": "Complete"},
                    {"name": "model-initializer", "status": "Complete"},
                ],
            ),
            mlPolicy={"torch": {}},
        ),
        mark="full_finetune_distributed",
        nodes=1,
        trainer={"command": ["tune", "run"]},
        suffix="-llama3.2-1b",
    ),
    PluginCase(
        "elastic",
        _spec(mlPolicy={"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 4, "metrics": [_METRIC]}}}),
        mark="PET_RDZV_ID",
        made=((HORIZONTAL_POD_AUTOSCALERS, ""),),
    ),
    PluginCase(
        "mpi",
        _spec(
            job("node", None),
            job("launcher", "trainer", dependsOn=[{"name": "node", "status": "Ready"}]),
            template={"successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]}},
            mlPolicy={"mpi": {"mpiImplementation": "OpenMPI"}},
        ),
        mark="mpi-ssh-auth",
        made=((SECRETS, "-mpi-ssh-auth"), (CONFIG_MAPS, "-mpi-hostfile")),
        jobs=("launcher", "node"),
    ),
    PluginCase("jax", _spec(mlPolicy={"jax": {}}), mark="JAX_PROCESS_ID"),
    PluginCase("xgboost", _spec(mlPolicy={"xgboost": {}}), mark="DMLC_TASK_ID"),
    PluginCase(
        "flux",
        _spec(mlPolicy={"flux": {}}),
        mark="flux-installer",
        made=((SECRETS, "-flux-curve"), (CONFIG_MAPS, "-flux-entrypoint")),
    ),
    PluginCase(
        "coscheduling",
        _spec(podGroupPolicy={"coscheduling": {}}),
        mark="scheduling.x-k8s.io/pod-group",
        made=((COSCHEDULING_POD_GROUPS, ""),),
        released=COSCHEDULING_POD_GROUPS,
    ),
    PluginCase(
        "volcano",
        _spec(podGroupPolicy={"volcano": {}}),
        mark="scheduling.k8s.io/group-name",
        made=((VOLCANO_POD_GROUPS, ""),),
        released=VOLCANO_POD_GROUPS,
    ),
    PluginCase("trainjobstatus", _spec(), mark="KUBEFLOW_TRAINER_SERVER_URL", made=((CONFIG_MAPS, "-tls-config"),)),
)
