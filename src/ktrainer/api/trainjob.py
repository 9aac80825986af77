"""TrainJob: one training job, as users write it. Its status is in `ktrainer.api.trainjobstatus`.

An attribute's default is the CRD's default, and None (or empty) where the CRD has none: what such a field means when it
is absent is decided by the code that reads it.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field

from ktrainer.api.foreign import EnvVar, ResourceRequirements
from ktrainer.api.labels import GROUP
from ktrainer.api.model import Model, ObjectMeta
from ktrainer.api.override import PodTemplateOverride
from ktrainer.api.patch import RuntimePatch
from ktrainer.api.resources import API_VERSION
from ktrainer.api.schema import (
    ATOMIC,
    ATOMIC_MAP,
    IMMUTABLE,
    INT64,
    INT64_MAX,
    NOT_EMPTY,
    Count,
    IntOrString,
    Keyed,
    Name,
    Positive,
    Rule,
)
from ktrainer.api.trainjobstatus import TrainJobStatus

TRAINJOB_CONTROLLER: Final = f"{GROUP}/trainjob-controller"
"""The value of `managedBy` that makes a TrainJob ours."""
MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"
"""The value of `managedBy` that leaves a TrainJob to Kueue, which runs it in another cluster."""

PROCESS_WORDS: Final = ("auto", "cpu", "gpu")
"""What `numProcPerNode` may be beside a number."""

_WORDS = ", ".join(f"'{word}'" for word in PROCESS_WORDS)
PROCESSES: Final = Rule(
    f"type(self) == int || self in [{_WORDS}]",
    f"must be a number or one of {', '.join(PROCESS_WORDS)}",
    lambda value: isinstance(value, int) or value in PROCESS_WORDS,
)

_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+", re.ASCII)

StorageUri = Annotated[
    str,
    Field(max_length=2048),
    Rule(
        "self == '' || self.matches('^[A-Za-z][A-Za-z0-9+.-]*://.+$')",
        "must be empty or a URI such as hf://organization/name",
        lambda value: value == "" or _URI.fullmatch(value) is not None,
    ),
]
Environment = Annotated[list[EnvVar], Field(max_length=128), Keyed("name")]
Words = Annotated[list[Annotated[str, Field(max_length=1048576)]], Field(max_length=128), ATOMIC]


class RuntimeRef(Model):
    """The runtime that a TrainJob is made from."""

    name: Name
    """The name of the runtime."""
    api_group: Annotated[str, Field(max_length=253)] = GROUP
    """The API group of the runtime's kind."""
    kind: Annotated[str, Field(max_length=253)] = "ClusterTrainingRuntime"
    """The kind of the runtime: TrainingRuntime is looked up in the TrainJob's namespace, ClusterTrainingRuntime in the
    cluster."""


class SecretRef(Model):
    """A Secret in the TrainJob's namespace."""

    name: str = ""
    """The name of the Secret."""


class InitializerSource(Model):
    """Where an initializer gets its files from, and with what."""

    storage_uri: StorageUri | None = None
    """The place to download from, such as hf://organization/name; given to the initializer as STORAGE_URI."""
    env: Environment = Field(default_factory=list)
    """Environment variables for the initializer's container."""
    secret_ref: Annotated[SecretRef, ATOMIC_MAP] | None = None
    """A Secret whose keys become environment variables of the initializer's container."""


class Initializer(Model):
    """What is downloaded before the training starts."""

    dataset: InitializerSource | None = None
    """The dataset."""
    model: InitializerSource | None = None
    """The model to start from."""


class Trainer(Model):
    """How the training itself runs; all of it but `numNodes` stays as it was created."""

    image: Annotated[str, Field(max_length=500)] | None = None
    """The image of the training container; the runtime's by default."""
    command: Words | None = None
    """The command of the training container; an empty list is that of the image, absent that of the runtime."""
    args: Words | None = None
    """The arguments of the training container; empty and absent as for the command."""
    env: Environment = Field(default_factory=list)
    """Environment variables for the training container, over those of the runtime."""
    num_nodes: Positive | None = None
    """The number of training nodes. It can change only where the runtime is elastic, and within its bounds."""
    num_proc_per_node: Annotated[IntOrString, PROCESSES] | None = None
    """The number of processes on each node: a number, or auto, cpu or gpu to count what the node has."""
    resources_per_node: ResourceRequirements | None = None
    """The resources of each node, merged over those of the runtime."""


_FROZEN = ("image", "command", "args", "env", "numProcPerNode", "resourcesPerNode")
# Presence counts, too: a rule on each field would not speak when an update adds or removes it.
TRAINER_IMMUTABLE: Final = Rule(
    " && ".join(
        f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || self.{field} == oldSelf.{field})"
        for field in _FROZEN
    ),
    IMMUTABLE.message,
)


class TrainJobSpec(Model):
    """What the user wants."""

    runtime_ref: Annotated[RuntimeRef, IMMUTABLE]
    """The runtime that the job is made from."""
    initializer: Annotated[Initializer, IMMUTABLE] | None = None
    """What is downloaded before the training starts."""
    trainer: Annotated[Trainer, TRAINER_IMMUTABLE] | None = None
    """How the training itself runs."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels for the JobSet, over those of the runtime's template."""
    annotations: dict[str, str] = Field(default_factory=dict)
    """Annotations for the JobSet, over those of the runtime's template."""
    pod_template_overrides: Annotated[list[PodTemplateOverride], ATOMIC] = Field(default_factory=list)
    """Changes to the pods of the runtime's jobs, in order; runtimePatches are applied after them."""
    runtime_patches: Annotated[list[RuntimePatch], Field(max_length=16), Keyed("manager")] = Field(default_factory=list)
    """Changes to the runtime, one entry for each manager that makes some."""
    suspend: bool = False
    """Whether the job's pods are taken away, or not yet started."""
    active_deadline_seconds: Annotated[int, Field(ge=1, le=INT64_MAX), INT64, IMMUTABLE] | None = None
    """How many seconds the job may run, counted from its creation or from the last resume, before it is failed."""
    ttl_seconds_after_finished: Count | None = None
    """How many seconds after its end the TrainJob is deleted, with all that belongs to it; never when absent."""
    managed_by: Annotated[
        str,
        Field(max_length=253),
        Rule(
            f"self in ['{TRAINJOB_CONTROLLER}', '{MULTIKUEUE}']",
            f"must be {TRAINJOB_CONTROLLER} or {MULTIKUEUE}",
            lambda value: value in {TRAINJOB_CONTROLLER, MULTIKUEUE},
        ),
        IMMUTABLE,
    ] = TRAINJOB_CONTROLLER
    """Which controller runs the job."""


class TrainJob(Model):
    """A training job: a reference to a runtime, and what differs from it."""

    rules = (
        Rule(
            "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
            "metadata.name must be an RFC 1035 label: lower-case letters, digits and inner hyphens, a letter first",
            lambda job: _NAME.fullmatch(job.metadata.name) is not None,
        ),
        Rule(
            "size(self.metadata.name) <= 63",
            "metadata.name must have at most 63 characters",
            lambda job: len(job.metadata.name) <= 63,
        ),
    )

    api_version: Literal["trainer.kubeflow.org/v1alpha1"] = API_VERSION
    """The version of this schema."""
    kind: Literal["TrainJob"] = "TrainJob"
    """The kind of this object."""
    metadata: ObjectMeta
    """Name, namespace, labels and annotations, as of any object."""
    spec: TrainJobSpec
    """What the user wants."""
    status: Annotated[TrainJobStatus, NOT_EMPTY] = Field(default_factory=TrainJobStatus)
    """What has become of it."""


def trainer_of(trainjob: TrainJob) -> Trainer:
    """How the training runs, as far as the TrainJob says so; a TrainJob without a trainer says nothing."""
    return trainjob.spec.trainer or Trainer()
