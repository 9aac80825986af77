"""`podTemplateOverrides` of a TrainJob: the older of the two ways to change the pods that a runtime describes."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from ktrainer.api.foreign import (
    Affinity,
    EnvVar,
    LocalObjectReference,
    PodSchedulingGate,
    Toleration,
    Volume,
    VolumeMount,
)
from ktrainer.api.model import Model
from ktrainer.api.schema import ATOMIC, MOUNTS, Keyed
from ktrainer.api.template import TemplateMeta


class TargetJob(Model):
    """A replicated job of the runtime."""

    name: Annotated[str, Field(min_length=1)]
    """The name of the replicated job."""


class ContainerOverride(Model):
    """What changes in a container that the runtime already has."""

    name: Annotated[str, Field(min_length=1)]
    """The name of the container in the runtime."""
    env: Annotated[list[EnvVar], Keyed("name")] = Field(default_factory=list)
    """Environment variables to add or replace."""
    volume_mounts: Annotated[list[VolumeMount], MOUNTS] = Field(default_factory=list)
    """Volumes to mount, or to mount elsewhere."""


class PodSpecOverride(Model):
    """What changes in the pods."""

    service_account_name: str | None = None
    """The service account that the pods run as."""
    node_selector: dict[str, str] = Field(default_factory=dict)
    """Labels that a node must have."""
    affinity: Affinity | None = None
    """Where the scheduler should place the pods."""
    tolerations: Annotated[list[Toleration], ATOMIC] = Field(default_factory=list)
    """The taints that the pods tolerate; this list replaces the runtime's."""
    volumes: Annotated[list[Volume], Keyed("name")] = Field(default_factory=list)
    """Volumes to add or replace."""
    init_containers: Annotated[list[ContainerOverride], Keyed("name")] = Field(default_factory=list)
    """Changes to init containers."""
    containers: Annotated[list[ContainerOverride], Keyed("name")] = Field(default_factory=list)
    """Changes to containers."""
    scheduling_gates: Annotated[list[PodSchedulingGate], Keyed("name")] = Field(default_factory=list)
    """Gates that keep the pods from being scheduled until each is removed."""
    image_pull_secrets: Annotated[list[LocalObjectReference], Keyed("name")] = Field(default_factory=list)
    """Secrets to pull the images with."""


class PodTemplateOverride(Model):
    """A change to the pods of some replicated jobs; later entries win over earlier ones."""

    target_jobs: Annotated[list[TargetJob], ATOMIC]
    """The replicated jobs whose pods change."""
    metadata: TemplateMeta | None = None
    """Labels and annotations to put on the pods."""
    spec: PodSpecOverride | None = None
    """What changes in the pods."""
