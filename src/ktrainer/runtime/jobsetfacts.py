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
POD_CHANGE: Final = "trainer.v1alpha1.PodChange"
"""A change to a pod spec: nothing is required, and a field of its own that is zero is not the same as none."""

_STRING: Final = Shape(type="string")
_INTEGER: Final = Shape(type="integer")
_INT32: Final = Shape(type="integer", format="int32")
_BOOLEAN: Final = Shape(type="boolean")
_QUANTITIES: Final = Shape(type="map", values=Shape(type="quantity"))


def _ref(name: str) -> Shape:
    return Shape(ref=f"jobset.v1alpha2.{name}")


def _list(items: Shape) -> Shape:
    return Shape(type="array", items=items)


def _keyed(items: Shape) -> Shape:
    return Shape(
        type="array", items=items, strategies=("merge",), merge_key="name", list_type="map", map_keys=("name",)
    )


def _one_of(words: str) -> Shape:
    return Shape(type="string", enum=tuple(words.split()))


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
            "ttlSecondsAfterFinished": _INT32,
            "volumeClaimPolicies": _list(_ref("VolumeClaimPolicy")),
        }
    ),
    "ReplicatedJob": ObjectType(
        {
            "name": _STRING,
            "groupName": _STRING,
            "template": Shape(ref="batch.v1.JobTemplateSpec"),
            "replicas": _INT32,
            "dependsOn": _keyed(_ref("DependsOn")),
        },
        required=("name", "template"),
    ),
    "DependsOn": ObjectType({"name": _STRING, "status": _one_of("Ready Complete")}, required=("name", "status")),
    "Network": ObjectType({"enableDNSHostnames": _BOOLEAN, "subdomain": _STRING, "publishNotReadyAddresses": _BOOLEAN}),
    "SuccessPolicy": ObjectType(
        {"operator": _one_of("All Any"), "targetReplicatedJobs": _list(_STRING)}, required=("operator",)
    ),
    "FailurePolicy": ObjectType(
        {
            "maxRestarts": _INT32,
            "restartStrategy": _one_of("Recreate BlockingRecreate InPlaceRestart"),
            "rules": _list(_ref("FailurePolicyRule")),
        }
    ),
    "FailurePolicyRule": ObjectType(
        {
            "name": _STRING,
            "action": _one_of(
                "FailJobSet RestartJobSet RestartJobSetAndIgnoreMaxRestarts RestartJob RestartJobAndIgnoreMaxRestarts"
            ),
            "onJobFailureReasons": _list(_STRING),
            "onJobFailureMessagePatterns": _list(_STRING),
            "targetReplicatedJobs": _list(_STRING),
        },
        required=("name", "action"),
    ),
    "StartupPolicy": ObjectType({"startupPolicyOrder": _one_of("AnyOrder InOrder")}, required=("startupPolicyOrder",)),
    "Coordinator": ObjectType(
        {"replicatedJob": _STRING, "jobIndex": _INTEGER, "podIndex": _INTEGER}, required=("replicatedJob",)
    ),
    "VolumeClaimPolicy": ObjectType(
        {"templates": _list(_ref("VolumeClaim")), "retentionPolicy": _ref("VolumeRetentionPolicy")}
    ),
    "VolumeClaim": ObjectType(
        {
            "apiVersion": _STRING,
            "kind": _STRING,
            "metadata": Shape(ref="meta.v1.ObjectMeta"),
            "spec": Shape(ref="core.v1.PersistentVolumeClaimSpec"),
            "status": Shape(type="object"),
        }
    ),
    "VolumeRetentionPolicy": ObjectType({"whenDeleted": _one_of("Delete Retain")}),
}


@cache
def jobset_facts() -> Facts:
    """The facts of Kubernetes and of JobSet, made on first use."""
    types = {f"jobset.v1alpha2.{name}": type_ for name, type_ in _TYPES.items()}
    claims = _keyed(Shape(ref="core.v1.ResourceClaim"))
    types[RESOURCES] = ObjectType({"limits": _QUANTITIES, "requests": _QUANTITIES, "claims": claims})
    types[POD_CHANGE] = ObjectType(kubernetes_facts().type_of("core.v1.PodSpec").fields)
    return kubernetes_facts().extended_with(types)
