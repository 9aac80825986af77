"""The runtimes that come with ktrainer."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ktrainer.app.documents import Document, DocumentReader, run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.render import Rendering, render, validate
from ktrainer.app.training import build_training
from ktrainer.framework.dependencies import Dependencies
from support.training import trainjob_json

FOLDER = Path(__file__).parents[3] / "config" / "runtimes"
FRAMEWORKS = {
    "torch-distributed": "torch",
    "deepspeed-distributed": "deepspeed",
    "mlx-distributed": "mlx",
    "jax-distributed": "jax",
    "xgboost-distributed": "xgboost",
    "torchtune-llama3.2-1b": "torchtune",
    "torchtune-llama3.2-3b": "torchtune",
    "torchtune-qwen2.5-1.5b": "torchtune",
}


def read(name: str) -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return value


def work(command: Any, *values: dict[str, Any]) -> Rendering:
    documents = [Document("runtimes", number, value) for number, value in enumerate(values, 1)]
    reader = DocumentReader(documents)
    given = Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys)
    made: Rendering = run_now(command(documents, build_training(given), "default"))
    return made


def containers(value: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = value["spec"]["template"]["spec"]["replicatedJobs"]
    return [each for job in jobs for each in job["template"]["spec"]["template"]["spec"]["containers"]]


def test_all_runtimes_should_be_there_and_be_installed() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*FRAMEWORKS, "kustomization"}
    assert read("kustomization")["resources"] == sorted(f"{name}.yaml" for name in FRAMEWORKS)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_runtime_should_be_found_by_the_sdk_and_pass_all_checks(name: str) -> None:
    value = read(name)
    assert value["metadata"] == {
        "name": name,
        "labels": {
            "trainer.kubeflow.org/framework": FRAMEWORKS[name],
            "trainer.kubeflow.org/webhook-validation": "disabled",
        },
    }
    (report,) = work(validate, value).reports
    assert (report.errors, report.warnings) == ([], [])


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_images_should_be_pinned(name: str) -> None:
    for container in containers(read(name)):
        _, _, tag = container["image"].rpartition(":")
        assert tag not in {"", "latest"}
        assert "/" not in tag


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_trainjob_should_need_nothing_but_a_runtime(name: str) -> None:
    rendering = work(render, read(name), trainjob_json(runtime=name))
    assert not rendering.has_errors
    assert [each["kind"] for each in rendering.objects][-1] == "JobSet"


@pytest.mark.parametrize("name", [name for name in FRAMEWORKS if name.startswith("torchtune")])
def test_torchtune_should_find_model_and_paths(name: str) -> None:
    rendering = work(render, read(name), trainjob_json(runtime=name, trainer={"command": ["tune", "run"]}))
    assert not rendering.has_errors
    node = rendering.objects[-1]["spec"]["replicatedJobs"][-1]["template"]["spec"]["template"]["spec"]["containers"][0]
    config = next(word for word in containers(read(name))[-1]["command"] if "/" in word and "_full" in word)
    assert node["command"][:6] == [
        "tune",
        "run",
        "--rdzv_endpoint=demo-node-0-0.demo:29500",
        "full_finetune_distributed",
        "--config",
        config,
    ]
    assert "output_dir=/workspace/output" in node["command"]
