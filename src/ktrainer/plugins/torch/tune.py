"""TorchTune: which recipe and which configuration a TrainJob asks for by its runtime's name, arguments and devices.

Parity: pkg/runtime/framework/plugins/torch/torchtune.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.rendezvous import TRAINER_PORT
from ktrainer.framework.resources import gpu_count_of
from ktrainer.kube import fields
from ktrainer.kube.fields import Path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainjob import Trainer, TrainJob
    from ktrainer.framework.info import Info
    from ktrainer.kube.fields import ErrorList

ENTRYPOINT: Final = ["tune", "run"]

LLAMA_3_2: Final = frozenset({"llama3_2/1B", "llama3_2/3B"})
LLAMA_3_3_70B: Final = "llama3_3/70B"
QWEN_2_5: Final = "qwen2_5/1.5B"
MODELS: Final = LLAMA_3_2 | {LLAMA_3_3_70B, QWEN_2_5}

LORA_MODULES: Final = "model.lora_attn_modules"
QUANTIZE_BASE: Final = "model.quantize_base"
USE_DORA: Final = "model.use_dora"
MANAGED: Final = frozenset({"output_dir", "tokenizer.path", "tokenizer.merges_file", "checkpointer.checkpoint_dir"})
"""What the runtime's command says, and a TrainJob's arguments may not."""


@dataclass(frozen=True, slots=True)
class Devices:
    """What the training runs on."""

    nodes: int
    processes: int | str
    gpus: int

    @property
    def is_single(self) -> bool:
        """Whether there is one device in all."""
        return self.nodes == 1 and (self.processes == 1 or self.gpus == 1)

    @property
    def needs_rendezvous(self) -> bool:
        """Whether there are several processes, which have to meet."""
        several = self.processes > 1 if isinstance(self.processes, int) else self.gpus > 1
        return self.nodes > 1 or several


def is_tune(trainer: Trainer | None) -> bool:
    """Whether a TrainJob is for TorchTune: any other command makes it an ordinary job."""
    return trainer is not None and trainer.command == ENTRYPOINT


def command_of(trainjob: TrainJob, devices: Devices, master: str, runtime_command: Iterable[str]) -> list[str]:
    """The whole command of a TorchTune job."""
    recipe, config = recipe_of(trainjob, devices)
    rendezvous = [f"--rdzv_endpoint={master}:{TRAINER_PORT}"] if devices.needs_rendezvous else []
    managed = [word for word in runtime_command if _key(word) in MANAGED]
    return [*ENTRYPOINT, *rendezvous, recipe, "--config", config, *managed]


def recipe_of(trainjob: TrainJob, devices: Devices) -> tuple[str, str]:
    """The recipe and its configuration."""
    args = trainer_of(trainjob).args or []
    model = model_of(trainjob.spec.runtime_ref.name)
    if devices.nodes > 1:
        return "full_finetune_distributed", f"{model}_full_multinode"
    method, variant = "full", "full"
    if uses_qlora(args):
        method, variant = "lora", "qlora"
    elif uses_lora(args):
        method, variant = "lora", "lora"
    if devices.is_single:
        return f"{method}_finetune_single_device", f"{model}_{variant}_single_device"
    return f"{method}_finetune_distributed", f"{model}_{variant}"


def model_of(runtime: str) -> str:
    """The model that a runtime's name tells: llama3_2/1B of torchtune-llama3.2-1b, and nothing of other forms."""
    parts = runtime.split("-")
    return f"{parts[1].replace('.', '_')}/{parts[2].upper()}" if len(parts) == 3 else ""


def uses_lora(args: Iterable[str]) -> bool:
    """Whether the arguments ask for LoRA."""
    return any(LORA_MODULES in arg for arg in args)


def uses_qlora(args: Iterable[str]) -> bool:
    """Whether the arguments ask for QLoRA, which DoRA excludes."""
    words = list(args)
    return _is_true(words, QUANTIZE_BASE) and not _is_true(words, USE_DORA)


def validate_tune(info: Info, trainjob: TrainJob, processes: int | str) -> ErrorList:
    """All that TorchTune cannot do; `processes` is what is asked for, words unresolved."""
    trainer = trainer_of(trainjob)
    name = trainjob.spec.runtime_ref.name
    model, errors = model_of(name), list[fields.FieldError]()
    args, nodes = trainer.args or [], trainer.num_nodes or 1
    runtime_path, trainer_path = Path("spec.runtimeRef.name"), Path("spec.trainer")
    if model not in MODELS:
        detail = f"its name must tell one of the models {', '.join(sorted(MODELS))}, not {model!r}"
        errors.append(fields.invalid(runtime_path, name, detail))
    if nodes > 1 and model != LLAMA_3_3_70B:
        detail = f"{model or 'this model'} is trained on one node"
        errors.append(fields.invalid(trainer_path.child("numNodes"), nodes, detail))
    devices = Devices(nodes, processes, gpu_count_of(info.node_resources))
    if nodes == 1 and uses_qlora(args):
        errors += _validate_qlora(trainjob, model, devices)
    if nodes > 1 and (uses_lora(args) or uses_qlora(args)):
        detail = "TorchTune has no LoRA on several nodes"
        errors.append(fields.invalid(trainer_path.child("numNodes"), nodes, detail))
    for position, arg in enumerate(args):
        if _key(arg) in MANAGED:
            detail = f"{_key(arg)} is set by the runtime"
            errors.append(fields.invalid(trainer_path.child("args").index(position), arg, detail))
    return errors


def _validate_qlora(trainjob: TrainJob, model: str, devices: Devices) -> ErrorList:
    if model == QWEN_2_5:
        detail = f"there is no QLoRA for {model}"
        return [fields.invalid(Path("spec.runtimeRef.name"), trainjob.spec.runtime_ref.name, detail)]
    if model not in LLAMA_3_2 or devices.is_single:
        return []
    path, resources = Path("spec.trainer"), trainer_of(trainjob).resources_per_node
    return [
        fields.invalid(path.child("numProcPerNode"), devices.processes, f"QLoRA of {model} runs in one process"),
        fields.invalid(path.child("resourcesPerNode"), resources, f"QLoRA of {model} needs exactly one GPU"),
    ]


def _is_true(args: list[str], key: str) -> bool:
    for arg in args:
        name, _, value = arg.partition("=")
        if key in name and value.strip().lower() == "true":
            return True
    return False


def _key(arg: str) -> str:
    return arg.partition("=")[0]
