"""`runtimePatches` of a TrainJob: changes to the runtime's template, each under the name of who makes it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ktrainer.api.foreign import (
    Affinity,
    EnvVar,
    LocalObjectReference,
    PodSchedulingGate,
    PodSecurityContext,
    SecurityContext,
    Toleration,
    Volume,
    VolumeMount,
)
from ktrainer.api.model import Model
from ktrainer.api.schema import ATOMIC, IMMUTABLE, INT64, INT64_MAX, MOUNTS, Instant, Keyed, Name
from ktrainer.api.template import TemplateMeta


class ContainerPatch(Model):
    """What changes in a container that the runtime already has."""

    name: Name
    """The name of the container in the runtime."""
    env: Annotated[list[EnvVar], Field(max_length=128), Keyed("name")] = Field(default_factory=list)
    """Environment variables to add or replace."""
    volume_mounts: Annotated[list[VolumeMount], Field(max_length=128), MOUNTS] = Field(default_factory=list)
    """Volumes to mount, or to mount elsewhere."""
    security_context: SecurityContext | None = None
    """The security settings of the container."""


ContainerPatches = Annotated[list[ContainerPatch], Field(max_length=64), Keyed("name"), IMMUTABLE]


class PodSpecPatch(Model):
    """What changes in the pods. The scheduling fields can change while the TrainJob is suspended, the others never."""

    service_account_name: Annotated[str, Field(max_length=253), IMMUTABLE] | None = None
    """The service account that the pods run as."""
    volumes: Annotated[list[Volume], Field(max_length=128), Keyed("name"), IMMUTABLE] = Field(default_factory=list)
    """Volumes to add or replace."""
    init_containers: ContainerPatches = Field(default_factory=list)
    """Changes to init containers."""
    containers: ContainerPatches = Field(default_factory=list)
    """Changes to containers."""
    image_pull_secrets: Annotated[list[LocalObjectReference], Field(max_length=64), Keyed("name"), IMMUTABLE] = Field(
        default_factory=list
    )
    """Secrets to pull the images with."""
    security_context: Annotated[PodSecurityContext, IMMUTABLE] | None = None
    """The security settings of the pods."""
    termination_grace_period_seconds: Annotated[int, Field(ge=0, le=INT64_MAX), INT64, IMMUTABLE] | None = None
    """How many seconds a pod has to end by itself before it is killed."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    """Labels that a node must have."""
    affinity: Affinity | None = None
    """Where the scheduler should place the pods."""
    tolerations: Annotated[list[Toleration], Field(max_length=128), ATOMIC] = Field(default_factory=list)
    """The taints that the pods tolerate; this list replaces the runtime's."""
    scheduling_gates: Annotated[list[PodSchedulingGate], Field(max_length=16), Keyed("name")] = Field(
        default_factory=list
    )
    """Gates that keep the pods from being scheduled until each is removed."""


class PodTemplatePatch(Model):
    """A change to a pod template."""

    metadata: TemplateMeta | None = None
    """Labels and annotations to merge into those of the pods."""
    spec: PodSpecPatch | None = None
    """What changes in the pods."""


class JobSpecPatch(Model):
    """A change to a Job."""

    template: PodTemplatePatch | None = None
    """A change to the Job's pod template."""


class JobTemplatePatch(Model):
    """A change to a job template."""

    metadata: TemplateMeta | None = None
    """Labels and annotations to merge into those of the Jobs."""
    spec: JobSpecPatch | None = None
    """What changes in the Jobs."""


class ReplicatedJobPatch(Model):
    """A change to a replicated job that the runtime has."""

    name: Name
    """The name of the replicated job in the runtime."""
    template: JobTemplatePatch | None = None
    """A change to its job template."""


class JobSetSpecPatch(Model):
    """A change to the JobSet."""

    replicated_jobs: Annotated[list[ReplicatedJobPatch], Field(max_length=100), Keyed("name")] = Field(
        default_factory=list
    )
    """Changes to replicated jobs."""


class JobSetTemplatePatch(Model):
    """A change to the runtime's JobSet template."""

    metadata: TemplateMeta | None = None
    """Labels and annotations to merge into those of the JobSet."""
    spec: JobSetSpecPatch | None = None
    """What changes in the JobSet."""


class TrainingRuntimeSpecPatch(Model):
    """A change to the runtime."""

    template: JobSetTemplatePatch | None = None
    """A change to the JobSet template."""


class RuntimePatch(Model):
    """A change that one manager makes to the runtime, for this TrainJob alone."""

    manager: Annotated[Name, IMMUTABLE]
    """Who makes the change: a path under a domain, such as acme.io/placement."""
    time: Instant | None = None
    """When the change was made or last altered; set at admission."""
    training_runtime_spec: TrainingRuntimeSpecPatch | None = None
    """What changes."""
