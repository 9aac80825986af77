"""Fields whose zero value (false, 0 or the empty string) is the same to Kubernetes as their absence, and the reverse.

The types that API servers and controllers decode into cannot tell the two apart, so the original writes neither. What
it leaves out here is left out by us, too, so that two control planes write the same object.

Parity: the JSON tags of k8s.io/api v0.36 and of sigs.k8s.io/jobset v0.12, for all that a JobSet's spec leads to.
"""

from __future__ import annotations

from typing import Final

_CORE: Final = {
    "AWSElasticBlockStoreVolumeSource": "fsType partition readOnly",
    "AzureFileVolumeSource": "readOnly",
    "CephFSVolumeSource": "path readOnly secretFile user",
    "CinderVolumeSource": "fsType readOnly",
    "ConfigMapEnvSource": "name",
    "ConfigMapKeySelector": "name",
    "ConfigMapProjection": "name",
    "ConfigMapVolumeSource": "name",
    "Container": "image imagePullPolicy stdin stdinOnce terminationMessagePath terminationMessagePolicy tty workingDir",
    "ContainerPort": "hostIP hostPort name protocol",
    "EmptyDirVolumeSource": "medium",
    "EnvFromSource": "prefix",
    "EnvVar": "value",
    "FCVolumeSource": "fsType readOnly",
    "FlexVolumeSource": "fsType readOnly",
    "FlockerVolumeSource": "datasetName datasetUUID",
    "GCEPersistentDiskVolumeSource": "fsType partition readOnly",
    "GitRepoVolumeSource": "directory revision",
    "GlusterfsVolumeSource": "readOnly",
    "HTTPGetAction": "host path scheme",
    "ISCSIVolumeSource": "chapAuthDiscovery chapAuthSession fsType iscsiInterface readOnly",
    "ImageVolumeSource": "pullPolicy reference",
    "LocalObjectReference": "name",
    "NFSVolumeSource": "readOnly",
    "ObjectFieldSelector": "apiVersion",
    "PersistentVolumeClaimSpec": "volumeName",
    "PersistentVolumeClaimVolumeSource": "readOnly",
    "PhotonPersistentDiskVolumeSource": "fsType",
    "PodCertificateProjection": "certificateChainPath credentialBundlePath keyPath",
    "PodDNSConfigOption": "name",
    "PodSpec": (
        "dnsPolicy hostIPC hostNetwork hostPID hostname nodeName priorityClassName restartPolicy schedulerName "
        "serviceAccount serviceAccountName subdomain"
    ),
    "PortworxVolumeSource": "fsType readOnly",
    "Probe": "failureThreshold initialDelaySeconds periodSeconds successThreshold timeoutSeconds",
    "QuobyteVolumeSource": "group readOnly tenant user",
    "RBDVolumeSource": "fsType keyring pool readOnly user",
    "ResourceClaim": "request",
    "ResourceFieldSelector": "containerName",
    "SELinuxOptions": "level role type user",
    "ScaleIOVolumeSource": "fsType protectionDomain readOnly sslEnabled storageMode storagePool volumeName",
    "SecretEnvSource": "name",
    "SecretKeySelector": "name",
    "SecretProjection": "name",
    "SecretVolumeSource": "secretName",
    "ServiceAccountTokenProjection": "audience",
    "StorageOSVolumeSource": "fsType readOnly volumeName volumeNamespace",
    "TCPSocketAction": "host",
    "Toleration": "effect key operator value",
    "VolumeMount": "readOnly subPath subPathExpr",
    "VsphereVirtualDiskVolumeSource": "fsType storagePolicyID storagePolicyName",
}
_JOBSET: Final = {
    "Coordinator": "jobIndex podIndex",
    "FailurePolicy": "maxRestarts restartStrategy",
    "Network": "subdomain",
    "ReplicatedJob": "groupName replicas",
    "VolumeClaim": "apiVersion kind",
}

LEFT_OUT: Final = {
    **{f"core.v1.{name}": frozenset(fields.split()) for name, fields in _CORE.items()},
    **{f"jobset.v1alpha2.{name}": frozenset(fields.split()) for name, fields in _JOBSET.items()},
    "meta.v1.ObjectMeta": frozenset({"name", "namespace"}),
}
"""Fields that are not written when they are zero, by type."""

WRITTEN: Final = {
    "core.v1.ResourceFieldSelector": ("divisor", "0"),
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": ("status", ""),
}
"""A field that is written even when it is absent, and its zero value, by type."""
