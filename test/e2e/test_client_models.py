"""That our kinds and the models of the package kubeflow-trainer-api understand each other."""

from typing import Any

import pytest
from kubeflow_trainer_api import models  # type: ignore[import-untyped] # it comes without types

from clusters.api import Api
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINJOBS
from support.apiobjects import Object

pytestmark = pytest.mark.usefixtures("crds")


def trainjob() -> Any:
    pod = models.TrainerV1alpha1PodSpecPatch(
        serviceAccountName="robot",
        nodeSelector={"pool": "a"},
        tolerations=[models.IoK8sApiCoreV1Toleration(key="gpu", operator="Exists")],
        volumes=[
            models.IoK8sApiCoreV1Volume(
                name="data",
                persistentVolumeClaim=models.IoK8sApiCoreV1PersistentVolumeClaimVolumeSource(claimName="data"),
            )
        ],
        containers=[
            models.TrainerV1alpha1ContainerPatch(
                name="sidecar",
                env=[models.IoK8sApiCoreV1EnvVar(name="A", value="1")],
                volumeMounts=[models.IoK8sApiCoreV1VolumeMount(name="data", mountPath="/data")],
            )
        ],
        terminationGracePeriodSeconds=30,
    )
    job = models.TrainerV1alpha1ReplicatedJobPatch(
        name="node",
        template=models.TrainerV1alpha1JobTemplatePatch(
            spec=models.TrainerV1alpha1JobSpecPatch(template=models.TrainerV1alpha1PodTemplatePatch(spec=pod))
        ),
    )
    patch = models.TrainerV1alpha1RuntimePatch(
        manager="trainer.kubeflow.org/kubeflow-sdk",
        trainingRuntimeSpec=models.TrainerV1alpha1TrainingRuntimeSpecPatch(
            template=models.TrainerV1alpha1JobSetTemplatePatch(
                spec=models.TrainerV1alpha1JobSetSpecPatch(replicatedJobs=[job])
            )
        ),
    )
    return models.TrainerV1alpha1TrainJob(
        apiVersion="trainer.kubeflow.org/v1alpha1",
        kind="TrainJob",
        metadata=models.IoK8sApimachineryPkgApisMetaV1ObjectMeta(name="job", labels={"a": "b"}),
        spec=models.TrainerV1alpha1TrainJobSpec(
            runtimeRef=models.TrainerV1alpha1RuntimeRef(name="torch-distributed"),
            initializer=models.TrainerV1alpha1Initializer(
                dataset=models.TrainerV1alpha1DatasetInitializer(
                    storageUri="hf://tatsu-lab/alpaca",
                    secretRef=models.IoK8sApiCoreV1LocalObjectReference(name="token"),
                ),
                model=models.TrainerV1alpha1ModelInitializer(storageUri="hf://meta-llama/model"),
            ),
            trainer=models.TrainerV1alpha1Trainer(
                image="registry.example/train",
                command=["bash", "-c"],
                args=["train"],
                env=[models.IoK8sApiCoreV1EnvVar(name="B", value="2")],
                numNodes=2,
                numProcPerNode=4,
                resourcesPerNode=models.IoK8sApiCoreV1ResourceRequirements(
                    limits={
                        "nvidia.com/gpu": models.IoK8sApimachineryPkgApiResourceQuantity(1),
                        "memory": models.IoK8sApimachineryPkgApiResourceQuantity("1Gi"),
                    }
                ),
            ),
            suspend=True,
            activeDeadlineSeconds=60,
            managedBy="trainer.kubeflow.org/trainjob-controller",
            runtimePatches=[patch],
        ),
    )


def without_metadata(item: Object) -> Object:
    return {key: value for key, value in item.items() if key != "metadata"}


def test_a_trainjob_of_the_client_should_come_back_as_it_was_sent(admin: Api, namespace: str) -> None:
    sent = trainjob().to_dict()
    made = admin.create(f"{TRAINJOBS.path(namespace)}?fieldValidation=Strict", sent)
    sent["spec"]["runtimeRef"] |= {"apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"}
    assert without_metadata(made) == without_metadata(sent)
    read = models.TrainerV1alpha1TrainJob.from_dict(made).to_dict()
    assert without_metadata(read) == without_metadata(sent)


def test_a_runtime_of_the_client_should_come_back_as_it_was_sent(admin: Api) -> None:
    pod = models.IoK8sApiCoreV1PodSpec(
        containers=[models.IoK8sApiCoreV1Container(name="node", image="registry.example/train")]
    )
    template = models.IoK8sApiBatchV1JobTemplateSpec(
        metadata=models.IoK8sApimachineryPkgApisMetaV1ObjectMeta(
            labels={"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
        ),
        spec=models.IoK8sApiBatchV1JobSpec(template=models.IoK8sApiCoreV1PodTemplateSpec(spec=pod)),
    )
    runtime = models.TrainerV1alpha1ClusterTrainingRuntime(
        apiVersion="trainer.kubeflow.org/v1alpha1",
        kind="ClusterTrainingRuntime",
        metadata=models.IoK8sApimachineryPkgApisMetaV1ObjectMeta(name="client-runtime"),
        spec=models.TrainerV1alpha1TrainingRuntimeSpec(
            mlPolicy=models.TrainerV1alpha1MLPolicy(numNodes=1, torch=models.TrainerV1alpha1TorchMLPolicySource()),
            template=models.TrainerV1alpha1JobSetTemplateSpec(
                spec=models.JobsetV1alpha2JobSetSpec(
                    replicatedJobs=[
                        models.JobsetV1alpha2ReplicatedJob(
                            name="node", groupName="default", replicas=1, template=template
                        )
                    ]
                )
            ),
        ),
    )
    sent = runtime.to_dict()
    made = admin.create(f"{CLUSTER_TRAINING_RUNTIMES.path()}?fieldValidation=Strict&dryRun=All", sent)
    assert without_metadata(made) == without_metadata(sent)
    assert models.TrainerV1alpha1ClusterTrainingRuntime.from_dict(made).spec == runtime.spec
