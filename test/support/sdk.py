"""What users of the `kubeflow` SDK do: each way to train that it has, for the runtimes that come with ktrainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kubeflow.trainer import (
    BuiltinTrainer,
    CustomTrainer,
    CustomTrainerContainer,
    DataCacheInitializer,
    DataFormat,
    DataType,
    HuggingFaceDatasetInitializer,
    HuggingFaceModelInitializer,
    Initializer,
    LoraConfig,
    Loss,
    S3DatasetInitializer,
    S3ModelInitializer,
    TorchTuneConfig,
    TorchTuneInstructDataset,
)
from kubeflow.trainer.options import (
    ActiveDeadlineSeconds,
    Annotations,
    ContainerPatch,
    JobSetSpecPatch,
    JobSetTemplatePatch,
    JobSpecPatch,
    JobTemplatePatch,
    Labels,
    Name,
    PodSpecPatch,
    PodTemplatePatch,
    ReplicatedJobPatch,
    RuntimePatch,
    TrainerArgs,
    TrainerCommand,
    TrainingRuntimeSpecPatch,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def train(rate: float = 0.1) -> None:
    """What a user trains with; the SDK sends its source."""
    import os

    os.write(1, f"{rate}\n".encode())


_PATCH = RuntimePatch(
    TrainingRuntimeSpecPatch(
        JobSetTemplatePatch(
            metadata={"labels": {"team": "a"}, "annotations": {"note": "b"}},
            spec=JobSetSpecPatch(
                [
                    ReplicatedJobPatch(
                        name="node",
                        template=JobTemplatePatch(
                            metadata={"labels": {"job": "c"}},
                            spec=JobSpecPatch(
                                PodTemplatePatch(
                                    metadata={"annotations": {"pod": "d"}},
                                    spec=PodSpecPatch(
                                        service_account_name="robot",
                                        node_selector={"pool": "gpu"},
                                        tolerations=[{"key": "gpu", "operator": "Exists"}],
                                        volumes=[{"name": "data", "emptyDir": {}}],
                                        containers=[
                                            ContainerPatch(
                                                "node",
                                                volume_mounts=[{"name": "data", "mountPath": "/data"}],
                                                security_context={"runAsUser": 1000},
                                            )
                                        ],
                                        image_pull_secrets=[{"name": "registry"}],
                                    ),
                                )
                            ),
                        ),
                    )
                ]
            ),
        )
    )
)

TRAININGS: Mapping[str, dict[str, Any]] = {
    "nothing said": {"runtime": "torch-distributed"},
    "a function": {
        "runtime": "torch-distributed",
        "trainer": CustomTrainer(
            train,
            func_args={"rate": 0.2},
            packages_to_install=["numpy"],
            num_nodes=3,
            resources_per_node={"cpu": 2, "memory": "4Gi", "gpu": 4},
            env={"A": "1", "B": ""},
        ),
    },
    "a function on part of a GPU": {
        "runtime": "torch-distributed",
        "trainer": CustomTrainer(train, image="mine", resources_per_node={"mig-1g.5gb": 1, "storage": "10Gi"}),
    },
    "an image": {
        "runtime": "torch-distributed",
        "trainer": CustomTrainerContainer("mine", num_nodes=2, env={"A": "1"}),
        "options": [TrainerCommand(["python", "t.py"]), TrainerArgs(["--fast"])],
    },
    "options": {
        "runtime": "torch-distributed",
        "trainer": CustomTrainer(train, num_nodes=2),
        "options": [Labels({"a": "b"}), Annotations({"c": "d"}), ActiveDeadlineSeconds(60), _PATCH],
    },
    "JAX": {"runtime": "jax-distributed", "trainer": CustomTrainer(train, num_nodes=2)},
    "XGBoost": {"runtime": "xgboost-distributed", "trainer": CustomTrainer(train, num_nodes=2)},
    "DeepSpeed": {
        "runtime": "deepspeed-distributed",
        "trainer": CustomTrainer(train, num_nodes=4, resources_per_node={"gpu": 2}),
    },
    "MLX": {"runtime": "mlx-distributed", "trainer": CustomTrainer(train, num_nodes=2)},
    "fine-tuning as the runtime says": {"runtime": "torchtune-llama3.2-3b"},
    "fine-tuning with everything": {
        "runtime": "torchtune-llama3.2-1b",
        "initializer": Initializer(
            dataset=HuggingFaceDatasetInitializer("hf://tatsu-lab/alpaca/data", access_token="t"),
            model=HuggingFaceModelInitializer("hf://meta-llama/Llama-3.2-1B-Instruct", access_token="t"),
        ),
        "trainer": BuiltinTrainer(
            TorchTuneConfig(
                dtype=DataType.BF16,
                batch_size=8,
                epochs=2,
                loss=Loss.CEWithChunkedOutputLoss,
                num_nodes=1,
                dataset_preprocess_config=TorchTuneInstructDataset(
                    source=DataFormat.PARQUET, split="train[:95%]", train_on_input=True, column_map={"input": "i"}
                ),
                resources_per_node={"memory": "16G", "gpu": 1},
            )
        ),
    },
    "fine-tuning by adapters": {
        "runtime": "torchtune-qwen2.5-1.5b",
        "initializer": Initializer(
            dataset=S3DatasetInitializer("s3://bucket/data", endpoint="https://s3", access_key_id="i", region="r"),
            model=S3ModelInitializer("s3://bucket/model", role_arn="arn"),
        ),
        "trainer": BuiltinTrainer(
            TorchTuneConfig(
                peft_config=LoraConfig(apply_lora_to_mlp=True, lora_rank=8, lora_alpha=16, lora_dropout=0.1),
                resources_per_node={"gpu": 2},
            )
        ),
    },
    "fine-tuning on quantized weights": {
        "runtime": "torchtune-llama3.2-1b",
        "trainer": BuiltinTrainer(
            TorchTuneConfig(peft_config=LoraConfig(quantize_base=True), resources_per_node={"gpu": 1})
        ),
    },
    "a cache for the data": {
        "runtime": "torchtune-llama3.2-1b",
        "initializer": Initializer(
            dataset=DataCacheInitializer("cache://schema/table", metadata_loc="s3://m", num_data_nodes=2)
        ),
    },
}
"""What is given to `TrainerClient.train`, by what it is."""


def options_with_name(name: str, training: Mapping[str, Any]) -> list[Any]:
    """The options of a training, and a name for its TrainJob."""
    return [*training.get("options", ()), Name(name)]


def annotated_pods(annotations: dict[str, str]) -> RuntimePatch:
    """An option that annotates the pods of the job `node`."""
    pods = PodTemplatePatch(metadata={"annotations": annotations})
    job = ReplicatedJobPatch(name="node", template=JobTemplatePatch(spec=JobSpecPatch(pods)))
    return RuntimePatch(TrainingRuntimeSpecPatch(JobSetTemplatePatch(spec=JobSetSpecPatch([job]))))
