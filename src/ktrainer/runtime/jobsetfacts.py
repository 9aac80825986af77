"""What there is to know about the fields of a JobSet, in the form of `ktrainer.kube.facts`.

Parity: api/jobset/v1alpha2 of sigs.k8s.io/jobset.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from ktrainer.kube.facts import ObjectType, Shape, kubernetes_facts

if TYPE_CHECKING:
    from ktrainer.kube.facts import Facts

JOBSET_SPEC: Final = "jobset.v1alpha2.JobSetSpec"
RESOURCES: Final = "trainer.v1alpha1.Resources"
"""The ResourceRequirements of a training node. Unlike those of a container, their claims merge by name."""

_STRING: Final = Shape(type="string")
_INTEGER: Final = Shape(type="integer")
_BOOLEAN: Final = Shape(type="boolean")
_QUANTITIES: Final = Shape(type="map", values=Shape(type="quantity"))


def _ref(name: str) -> Shape:
    return Shape(ref=f"jobset.v1alpha2.{name}")


def _list(items: Shape) -> Shape:
    return Shape(type="array", items=items)


def _keyed(items: Shape) -> Shape:
    return Shape(type="array", items=items, strategies=("merge",), merge_key="name")


_TYPES: Final = {
    "JobSetSpec": ObjectType(
        {
            "replicatedJobs": _keyed(_ref("ReplicatedJob")),
            "network": _ref("Network"),
            "successPolicy": _ref("SuccessPolicy"),
            "failurePolicy": _ref("FailurePolicy"),
            "startupPolicy": _ref("StartupPolicy"),
            "suspend": _BOOLEAN,
            "coordinator": _ref("Coordinator"),
            "managedBy": _STRING,
            "ttlSecondsAfterFinished": _INTEGER,
            "volumeClaimPolicies": _list(_ref("VolumeClaimPolicy")),
        }
    ),
    "ReplicatedJob": ObjectType(
        {
            "name": _STRING,
            "groupName": _STRING,
            "template": Shape(ref="batch.v1.JobTemplateSpec"),
            "replicas": _INTEGER,
            "dependsOn": _keyed(_ref("DependsOn")),
        },
        required=("name", "template"),
    ),
    "DependsOn": ObjectType({"name": _STRING, "status": _STRING}, required=("name", "status")),
    "Network": ObjectType({"enableDNSHostnames": _BOOLEAN, "subdomain": _STRING, "publishNotReadyAddresses": _BOOLEAN}),
    "SuccessPolicy": ObjectType({"operator": _STRING, "targetReplicatedJobs": _list(_STRING)}, required=("operator",)),
    "FailurePolicy": ObjectType(
        {"maxRestarts": _INTEGER, "restartStrategy": _STRING, "rules": _list(_ref("FailurePolicyRule"))}
    ),
    "FailurePolicyRule": ObjectType(
        {
            "name": _STRING,
            "action": _STRING,
            "onJobFailureReasons": _list(_STRING),
            "onJobFailureMessagePatterns": _list(_STRING),
            "targetReplicatedJobs": _list(_STRING),
        },
        required=("name", "action"),
    ),
    "StartupPolicy": ObjectType({"startupPolicyOrder": _STRING}, required=("startupPolicyOrder",)),
    "Coordinator": ObjectType(
        {"replicatedJob": _STRING, "jobIndex": _INTEGER, "podIndex": _INTEGER}, required=("replicatedJob",)
    ),
    "VolumeClaimPolicy": ObjectType(
        {"templates": _list(_ref("VolumeClaim")), "retentionPolicy": _ref("VolumeRetentionPolicy")}
    ),
    "VolumeClaim": ObjectType(
        {"metadata": Shape(ref="meta.v1.ObjectMeta"), "spec": Shape(ref="core.v1.PersistentVolumeClaimSpec")}
    ),
    "VolumeRetentionPolicy": ObjectType({"whenDeleted": _STRING}),
}


@cache
def jobset_facts() -> Facts:
    """The facts of Kubernetes and of JobSet, made on first use."""
    types = {f"jobset.v1alpha2.{name}": type_ for name, type_ in _TYPES.items()}
    claims = _keyed(Shape(ref="core.v1.ResourceClaim"))
    types[RESOURCES] = ObjectType({"limits": _QUANTITIES, "requests": _QUANTITIES, "claims": claims})
    return kubernetes_facts().extended_with(types)
