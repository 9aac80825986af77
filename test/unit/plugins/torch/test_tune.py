from typing import Any

import pytest

from ktrainer.api.trainjob import Trainer
from ktrainer.plugins.torch.plugin import Torch
from ktrainer.plugins.torch.tune import Devices, command_of, is_tune, model_of, recipe_of, uses_lora, uses_qlora
from support.training import container, dependencies, errors_of, findings_of, info_of, job, runtime, trainjob

LORA = "model.lora_attn_modules=[q_proj]"
QLORA = "model.quantize_base=True"
DORA = "model.use_dora=True"


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("torchtune-llama3.2-1b", "llama3_2/1B"),
        ("any-llama3.2-3b", "llama3_2/3B"),
        ("torchtune-llama3.3-70b", "llama3_3/70B"),
        ("torchtune-qwen2.5-1.5b", "qwen2_5/1.5B"),
        ("torchtune", ""),
        ("a-b-c-d", ""),
    ],
)
def test_the_model_should_be_told_by_the_runtimes_name(name: str, model: str) -> None:
    assert model_of(name) == model


@pytest.mark.parametrize(
    ("args", "lora", "qlora"),
    [
        pytest.param([], False, False, id="none"),
        pytest.param([LORA], True, False, id="LoRA"),
        pytest.param([LORA, QLORA], True, True, id="QLoRA"),
        pytest.param(["model.quantize_base= TRUE "], False, True, id="in any case"),
        pytest.param(["model.quantize_base=False"], False, False, id="switched off"),
        pytest.param(["model.quantize_base"], False, False, id="without a value"),
        pytest.param([QLORA, DORA], False, False, id="DoRA excludes it"),
        pytest.param([QLORA, "model.use_dora=False"], False, True, id="DoRA switched off"),
    ],
)
def test_the_method_should_be_told_by_the_arguments(args: list[str], lora: bool, qlora: bool) -> None:
    assert (uses_lora(args), uses_qlora(args)) == (lora, qlora)


@pytest.mark.parametrize(
    ("args", "devices", "recipe", "config"),
    [
        ([], Devices(1, 1, 0), "full_finetune_single_device", "_full_single_device"),
        ([], Devices(1, "auto", 1), "full_finetune_single_device", "_full_single_device"),
        ([LORA], Devices(1, 1, 8), "lora_finetune_single_device", "_lora_single_device"),
        ([LORA, QLORA], Devices(1, 1, 0), "lora_finetune_single_device", "_qlora_single_device"),
        ([], Devices(1, "auto", 2), "full_finetune_distributed", "_full"),
        ([LORA], Devices(1, 2, 0), "lora_finetune_distributed", "_lora"),
        ([QLORA], Devices(1, "gpu", 2), "lora_finetune_distributed", "_qlora"),
        ([LORA], Devices(2, 1, 1), "full_finetune_distributed", "_full_multinode"),
        ([], Devices(2, "auto", 8), "full_finetune_distributed", "_full_multinode"),
    ],
)
def test_the_recipe_should_fit_method_and_devices(args: list[str], devices: Devices, recipe: str, config: str) -> None:
    wanted = trainjob(runtime="torchtune-llama3.3-70b", trainer={"args": args})
    assert recipe_of(wanted, devices) == (recipe, f"llama3_3/70B{config}")


@pytest.mark.parametrize(
    ("devices", "meets"),
    [
        (Devices(1, 1, 8), False),
        (Devices(1, 2, 0), True),
        (Devices(1, "auto", 1), False),
        (Devices(1, "auto", 2), True),
        (Devices(2, 1, 1), True),
    ],
)
def test_processes_should_meet_where_there_are_several(devices: Devices, meets: bool) -> None:
    words = command_of(trainjob(runtime="x-llama3.2-1b", trainer={}), devices, "m.d", ())
    assert ("--rdzv_endpoint=m.d:29500" in words) is meets


def test_the_runtimes_own_settings_should_be_kept_in_order_and_nothing_else() -> None:
    command = ["tune", "run", "x", "--config", "y", "tokenizer.merges_file=/m", "output_dir=/o=p", "seed=1",
               "checkpointer.checkpoint_dir=/c", "tokenizer.path=/t", "output_dirs=/z"]  # fmt: skip
    words = command_of(trainjob(runtime="x-llama3.2-1b", trainer={}), Devices(1, 1, 0), "m", command)
    assert words[5:] == [
        "tokenizer.merges_file=/m",
        "output_dir=/o=p",
        "checkpointer.checkpoint_dir=/c",
        "tokenizer.path=/t",
    ]


@pytest.mark.parametrize(
    ("command", "tune"),
    [(["tune", "run"], True), (["tune"], False), (["tune", "run", "x"], False), ([], False), (None, False)],
)
def test_only_the_exact_command_should_be_torchtune(command: list[str] | None, tune: bool) -> None:
    assert is_tune(Trainer(command=command)) is tune
    assert is_tune(None) is False


def findings(name: str, trainer: dict[str, Any], gpus: int = 0) -> list[tuple[str, str]]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    value = runtime(job("node", "trainer", container(resources=resources)), name=name, mlPolicy={"torch": {}})
    wanted = trainjob(runtime=name, trainer={"command": ["tune", "run"], **trainer})
    return errors_of(findings_of(Torch(dependencies()), info_of(value, wanted), wanted))


NAME, NODES = ("INVALID", "spec.runtimeRef.name"), ("INVALID", "spec.trainer.numNodes")
ONE_DEVICE = [("INVALID", "spec.trainer.numProcPerNode"), ("INVALID", "spec.trainer.resourcesPerNode")]


@pytest.mark.parametrize(
    ("name", "trainer", "gpus", "errors"),
    [
        pytest.param("torchtune-llama3.2-1b", {}, 2, [], id="fine"),
        pytest.param("torchtune-gpt-9b", {}, 2, [NAME], id="unknown model"),
        pytest.param("torchtune-gpt-9b", {"numNodes": 2}, 2, [NAME, NODES], id="all findings at once"),
        pytest.param("torchtune-llama3.2-1b", {"numNodes": 2}, 2, [NODES], id="several nodes"),
        pytest.param("torchtune-llama3.3-70b", {"numNodes": 2}, 8, [], id="several nodes for the big one"),
        pytest.param("torchtune-llama3.3-70b", {"numNodes": 2, "args": [LORA]}, 8, [NODES], id="LoRA on several nodes"),
        pytest.param("torchtune-llama3.3-70b", {"numNodes": 2, "args": [QLORA]}, 8, [NODES], id="QLoRA on several"),
        pytest.param("torchtune-llama3.3-70b", {"args": [QLORA]}, 8, [], id="distributed QLoRA of the big one"),
        pytest.param("torchtune-llama3.2-1b", {"args": [QLORA]}, 1, [], id="QLoRA on one GPU"),
        pytest.param("torchtune-llama3.2-1b", {"args": [QLORA], "numProcPerNode": 1}, 2, [], id="QLoRA in one process"),
        pytest.param("torchtune-llama3.2-3b", {"args": [QLORA]}, 2, ONE_DEVICE, id="distributed QLoRA"),
        pytest.param("torchtune-llama3.2-3b", {"args": [QLORA]}, 0, ONE_DEVICE, id="QLoRA without a GPU"),
        pytest.param("torchtune-qwen2.5-1.5b", {"args": [QLORA]}, 1, [NAME], id="QLoRA of Qwen"),
        pytest.param("torchtune-qwen2.5-1.5b", {"args": [LORA]}, 1, [], id="LoRA of Qwen"),
    ],
)  # fmt: skip
def test_what_torchtune_cannot_do_should_be_refused(name: str, trainer: Any, gpus: int, errors: list[Any]) -> None:
    assert findings(name, trainer, gpus) == errors


@pytest.mark.parametrize(
    "arg", ["output_dir=/x", "tokenizer.path=/x", "tokenizer.merges_file=/x", "checkpointer.checkpoint_dir=/x"]
)
def test_settings_of_the_runtime_should_be_refused_as_arguments(arg: str) -> None:
    assert findings("torchtune-llama3.2-1b", {"args": ["seed=1", arg]}, 2) == [("INVALID", "spec.trainer.args[1]")]


def test_an_ordinary_job_should_not_be_judged_as_torchtune() -> None:
    assert findings("torchtune-gpt-9b", {"command": ["tune", "run", "x"], "args": ["output_dir=/x"]}) == []
