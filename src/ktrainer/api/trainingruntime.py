"""TrainingRuntime and ClusterTrainingRuntime: the templates that platform engineers keep, and TrainJobs refer to."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from ktrainer.api.foreign import JobSetSpec, LabelSelector, MetricSpec
from ktrainer.api.model import Model, ObjectMeta
from ktrainer.api.resources import API_VERSION
from ktrainer.api.schema import (
    ATOMIC,
    INT64,
    INT64_MAX,
    NOT_EMPTY,
    Count,
    Int32,
    IntOrString,
    Keyed,
    Name,
    Positive,
    Rule,
    Unique,
)
from ktrainer.api.template import TemplateMeta
from ktrainer.api.trainjob import PROCESS_WORDS


class EnvInjectionTarget(Model):
    """Containers of one replicated job."""

    job_name: Name
    """The name of the replicated job."""
    container_names: Annotated[
        list[Annotated[str, Field(max_length=63)]],
        Field(min_length=1, max_length=8),
        Unique(),
        Rule(
            "!self.exists(name, name == 'node')",
            "must not contain node: the main container always gets these variables",
            lambda names: "node" not in names,
        ),
    ]
    """The names of the containers or init containers."""


class EnvInjection(Model):
    """Where else the variables of torch are wanted."""

    targets: Annotated[list[EnvInjectionTarget], Field(max_length=16), Keyed("jobName")] = Field(default_factory=list)
    """The containers that get the variables."""


class ElasticPolicy(Model):
    """Between which bounds the number of nodes may change while the job runs."""

    rules = (
        Rule(
            "!has(self.minNodes) || !has(self.maxNodes) || self.minNodes <= self.maxNodes",
            "minNodes must not be greater than maxNodes",
            lambda policy: policy.min_nodes is None or policy.max_nodes is None or policy.min_nodes <= policy.max_nodes,
        ),
    )

    min_nodes: Positive | None = None
    """The smallest number of nodes that can train."""
    max_nodes: Positive | None = None
    """The greatest number of nodes that can train."""
    max_restarts: Count | None = None
    """How often the workers on a node are started anew before the node fails."""
    metrics: Annotated[list[MetricSpec], ATOMIC] = Field(default_factory=list)
    """What the number of nodes follows, as in a HorizontalPodAutoscaler; without metrics it changes by hand only."""


class TorchPolicy(Model):
    """Training with torchrun."""

    num_proc_per_node: (
        Annotated[
            IntOrString,
            Rule(
                f"type(self) == int ? self >= 1 : self in [{', '.join(map(repr, PROCESS_WORDS))}]",
                f"must be at least 1 or one of {', '.join(PROCESS_WORDS)}",
                lambda value: value >= 1 if isinstance(value, int) else value in PROCESS_WORDS,
            ),
        ]
        | None
    ) = None
    """The number of processes on each node: a number, or auto (when absent), cpu or gpu to count what the node has."""
    elastic_policy: ElasticPolicy | None = None
    """Between which bounds the number of nodes may change while the job runs."""
    env_injection: EnvInjection | None = None
    """Other containers than the main one that get the variables of torch."""


class MpiImplementation(StrEnum):
    """The MPI implementations whose launchers we know to set up."""

    OPEN_MPI = "OpenMPI"
    DEFAULT = ""
    """The same as `OPEN_MPI`."""
    OPEN_MPI_5 = "OpenMPI5"
    INTEL = "Intel"
    MPICH = "MPICH"


class MpiPolicy(Model):
    """Training with mpirun: a launcher starts processes on the nodes over SSH."""

    num_proc_per_node: Positive = 1
    """The number of processes on each node."""
    mpi_implementation: Annotated[MpiImplementation, Field(strict=False)] = MpiImplementation.OPEN_MPI
    """The MPI implementation in the image; OpenMPI5 is Open MPI from its version 5 on."""
    ssh_auth_mount_path: Annotated[str, Field(max_length=4096)] = "/root/.ssh"
    """The folder in the containers that the SSH keys are mounted at."""
    run_launcher_as_node: bool = False
    """Whether the launcher trains, too."""


class JaxPolicy(Model):
    """Training with JAX's distributed runtime."""


class XgboostPolicy(Model):
    """Training with XGBoost's collective."""


class FluxPolicy(Model):
    """Training under the Flux workload manager."""

    num_proc_per_node: Positive = 1
    """The number of processes on each node."""


POLICIES = ("torch", "mpi", "jax", "xgboost", "flux")


class MlPolicy(Model):
    """How the nodes of a job find each other, and how many they are."""

    rules = (
        Rule(
            f"[{', '.join(f'has(self.{policy})' for policy in POLICIES)}].filter(x, x).size() <= 1",
            "Only one of the policy can be configured",
            lambda policy: sum(getattr(policy, name) is not None for name in POLICIES) <= 1,
        ),
        Rule(
            "!(has(self.numNodes) && has(self.torch) && has(self.torch.elasticPolicy))",
            "numNodes must not be set together with torch.elasticPolicy",
            lambda policy: policy.num_nodes is None or policy.torch is None or policy.torch.elastic_policy is None,
        ),
    )

    num_nodes: Positive | None = None
    """The number of training nodes for TrainJobs that do not say; 1 when absent."""
    torch: TorchPolicy | None = None
    """Training with torchrun."""
    mpi: MpiPolicy | None = None
    """Training with mpirun."""
    jax: JaxPolicy | None = None
    """Training with JAX's distributed runtime."""
    xgboost: XgboostPolicy | None = None
    """Training with XGBoost's collective."""
    flux: FluxPolicy | None = None
    """Training under the Flux workload manager."""


class CoschedulingPolicy(Model):
    """All pods at once, by the coscheduling plugin of the scheduler."""

    schedule_timeout_seconds: Int32 = 60
    """How many seconds the scheduler waits for room for all pods."""


class NetworkTopologyMode(StrEnum):
    """How strictly Volcano keeps to the network topology."""

    HARD = "hard"
    SOFT = "soft"


class NetworkTopology(Model):
    """How close to each other in the network the pods must be."""

    mode: Annotated[NetworkTopologyMode, Field(strict=False)] = NetworkTopologyMode.HARD
    """Whether the bound must hold (hard) or should hold (soft)."""
    highest_tier_allowed: int = 1
    """The highest tier of the network that the pods may span."""


class VolcanoPolicy(Model):
    """All pods at once, by the Volcano scheduler."""

    network_topology: NetworkTopology | None = None
    """How close to each other in the network the pods must be."""


class PodGroupPolicy(Model):
    """Which scheduler starts the pods of a job all at once."""

    rules = (
        Rule(
            "!(has(self.coscheduling) && has(self.volcano))",
            "Only one of the policy can be configured",
            lambda policy: policy.coscheduling is None or policy.volcano is None,
        ),
    )

    coscheduling: CoschedulingPolicy | None = None
    """The coscheduling plugin of the scheduler."""
    volcano: VolcanoPolicy | None = None
    """The Volcano scheduler."""


class RunPolicy(Model):
    """How long TrainJobs run and stay, where they do not say so themselves."""

    active_deadline_seconds: Annotated[int, Field(ge=1, le=INT64_MAX), INT64] | None = None
    """How many seconds a job may run before it is failed."""
    ttl_seconds_after_finished: Count | None = None
    """How many seconds after its end a TrainJob is deleted."""


class JobSetTemplate(Model):
    """What the JobSet of a TrainJob is made from."""

    metadata: TemplateMeta | None = None
    """Labels and annotations for the JobSet."""
    spec: JobSetSpec = Field(default_factory=dict)
    """The spec of the JobSet (jobset.x-k8s.io/v1alpha2)."""


class TrainingRuntimeSpec(Model):
    """What a TrainJob gets from its runtime."""

    ml_policy: MlPolicy | None = None
    """How the nodes of a job find each other, and how many they are."""
    pod_group_policy: PodGroupPolicy | None = None
    """Which scheduler starts the pods of a job all at once; without it each pod starts by itself."""
    run_policy: RunPolicy | None = None
    """How long TrainJobs run and stay, where they do not say so themselves."""
    template: Annotated[JobSetTemplate, NOT_EMPTY] = Field(default_factory=JobSetTemplate)
    """What the JobSet of a TrainJob is made from."""


class ClusterTrainingRuntimeSpec(TrainingRuntimeSpec):
    """What a TrainJob gets from its runtime, and who may use it."""

    allowed_namespaces: LabelSelector | None = None
    """Selects by their labels the namespaces whose TrainJobs may use this runtime; all may when absent."""


class TrainingRuntime(Model):
    """A template for the TrainJobs of one namespace."""

    api_version: Literal["trainer.kubeflow.org/v1alpha1"] = API_VERSION
    """The version of this schema."""
    kind: Literal["TrainingRuntime"] = "TrainingRuntime"
    """The kind of this object."""
    metadata: ObjectMeta
    """Name, namespace, labels and annotations, as of any object."""
    spec: Annotated[TrainingRuntimeSpec, NOT_EMPTY] = Field(default_factory=TrainingRuntimeSpec)
    """What a TrainJob gets from this runtime."""


class ClusterTrainingRuntime(Model):
    """A template for the TrainJobs of all namespaces, or of those that it allows."""

    api_version: Literal["trainer.kubeflow.org/v1alpha1"] = API_VERSION
    """The version of this schema."""
    kind: Literal["ClusterTrainingRuntime"] = "ClusterTrainingRuntime"
    """The kind of this object."""
    metadata: ObjectMeta
    """Name, labels and annotations, as of any object."""
    spec: Annotated[ClusterTrainingRuntimeSpec, NOT_EMPTY] = Field(default_factory=ClusterTrainingRuntimeSpec)
    """What a TrainJob gets from this runtime, and who may use it."""
