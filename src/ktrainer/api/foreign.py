"""Names for the parts of our objects that other kinds define. They stay plain JSON, and pass through untouched.

The text in each is the name of the type among the facts of Kubernetes; the CRD generator puts its schema there.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from ktrainer.api.schema import Foreign
from ktrainer.kube.jsonvalue import JsonObject

Affinity: TypeAlias = Annotated[JsonObject, Foreign("core.v1.Affinity")]
EnvVar: TypeAlias = Annotated[JsonObject, Foreign("core.v1.EnvVar")]
JobSetSpec: TypeAlias = Annotated[JsonObject, Foreign("jobset.v1alpha2.JobSetSpec")]
LabelSelector: TypeAlias = Annotated[JsonObject, Foreign("meta.v1.LabelSelector")]
LocalObjectReference: TypeAlias = Annotated[JsonObject, Foreign("core.v1.LocalObjectReference")]
MetricSpec: TypeAlias = Annotated[JsonObject, Foreign("autoscaling.v2.MetricSpec")]
PodSchedulingGate: TypeAlias = Annotated[JsonObject, Foreign("core.v1.PodSchedulingGate")]
PodSecurityContext: TypeAlias = Annotated[JsonObject, Foreign("core.v1.PodSecurityContext")]
ResourceRequirements: TypeAlias = Annotated[JsonObject, Foreign("core.v1.ResourceRequirements")]
SecurityContext: TypeAlias = Annotated[JsonObject, Foreign("core.v1.SecurityContext")]
Toleration: TypeAlias = Annotated[JsonObject, Foreign("core.v1.Toleration")]
Volume: TypeAlias = Annotated[JsonObject, Foreign("core.v1.Volume")]
VolumeMount: TypeAlias = Annotated[JsonObject, Foreign("core.v1.VolumeMount")]
