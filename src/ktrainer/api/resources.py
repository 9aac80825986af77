"""The resources that ktrainer serves, watches or writes, as an API server knows them."""

from __future__ import annotations

from typing import Final

from ktrainer.api.labels import GROUP
from ktrainer.kube.identity import Resource

VERSION: Final = "v1alpha1"
API_VERSION: Final = "trainer.kubeflow.org/v1alpha1"

TRAINJOBS: Final = Resource(GROUP, VERSION, "TrainJob", "trainjobs", namespaced=True)
TRAINING_RUNTIMES: Final = Resource(GROUP, VERSION, "TrainingRuntime", "trainingruntimes", namespaced=True)
CLUSTER_TRAINING_RUNTIMES: Final = Resource(
    GROUP, VERSION, "ClusterTrainingRuntime", "clustertrainingruntimes", namespaced=False
)

JOBSETS: Final = Resource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", namespaced=True)
COSCHEDULING_POD_GROUPS: Final = Resource("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", namespaced=True)
VOLCANO_POD_GROUPS: Final = Resource("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", namespaced=True)
HORIZONTAL_POD_AUTOSCALERS: Final = Resource(
    "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", namespaced=True
)

CONFIG_MAPS: Final = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
SECRETS: Final = Resource("", "v1", "Secret", "secrets", namespaced=True)
PODS: Final = Resource("", "v1", "Pod", "pods", namespaced=True)
NAMESPACES: Final = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
LIMIT_RANGES: Final = Resource("", "v1", "LimitRange", "limitranges", namespaced=True)
RUNTIME_CLASSES: Final = Resource("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", namespaced=False)
PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False)
