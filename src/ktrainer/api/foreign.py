"""Names for the parts of our objects that other kinds define. They stay plain JSON, and pass through untouched.

The text in each is the name of the type among the facts of Kubernetes; the CRD generator puts its schema there.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import WithJsonSchema

from ktrainer.kube.jsonvalue import JsonObject

Affinity: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.Affinity"})]
EnvVar: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.EnvVar"})]
JobSetSpec: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "jobset.v1alpha2.JobSetSpec"})]
LabelSelector: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "meta.v1.LabelSelector"})]
LocalObjectReference: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.LocalObjectReference"})]
MetricSpec: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "autoscaling.v2.MetricSpec"})]
PodSchedulingGate: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.PodSchedulingGate"})]
PodSecurityContext: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.PodSecurityContext"})]
ResourceRequirements: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.ResourceRequirements"})]
SecurityContext: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.SecurityContext"})]
Toleration: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.Toleration"})]
Volume: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.Volume"})]
VolumeMount: TypeAlias = Annotated[JsonObject, WithJsonSchema({"x-foreign": "core.v1.VolumeMount"})]
