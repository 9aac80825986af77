"""That TrainJobs as the `kubeflow` SDK makes them can be rendered, on every runtime that comes with ktrainer."""

from multiprocessing.pool import AsyncResult, ThreadPool
from pathlib import Path
from typing import Any

import pytest
from kubeflow.trainer.backends.kubernetes.backend import KubernetesBackend
from kubernetes.client import ApiException  # type: ignore[import-untyped] # it comes without types

from ktrainer.api.yamltext import parse_documents
from support.rendering import rendered
from support.sdk import TRAININGS, options_with_name

J = dict[str, Any]

FOLDER = Path(__file__).parents[3] / "config" / "runtimes"
RUNTIMES: dict[str, J] = {
    path.stem: next(parse_documents(path.read_text())) for path in sorted(FOLDER.glob("*-*.yaml"))
}


class Cluster:
    """What the SDK needs of the API server: it hands out our runtimes, and keeps what is created."""

    def __init__(self, pool: ThreadPool) -> None:
        self.created: list[J] = []
        self._pool = pool

    def get_namespaced_custom_object(self, *_: str, async_req: bool) -> AsyncResult[J]:
        return self._pool.apply_async(self._none)

    def get_cluster_custom_object(self, group: str, version: str, kind: str, name: str, **_: Any) -> AsyncResult[J]:
        return self._pool.apply_async(RUNTIMES.__getitem__, (name,))

    def create_namespaced_custom_object(self, *given: Any) -> None:
        self.created.append(given[-1])

    def _none(self) -> J:
        raise ApiException(status=404)


def trained(training: J) -> J:
    """The TrainJob that the SDK creates."""
    with ThreadPool(1) as pool:
        backend = KubernetesBackend.__new__(KubernetesBackend)
        backend.namespace = "team-a"
        backend.custom_api = Cluster(pool)
        backend.train(**{**training, "options": options_with_name("job", training)})
        (made,) = backend.custom_api.created
    job: J = made
    return job


def jobset_of(training: J) -> J:
    rendering = rendered(RUNTIMES[training["runtime"]], trained(training))
    assert [report.errors for report in rendering.reports] == [[], []]
    return next(each for each in rendering.objects if each["kind"] == "JobSet")


def pod_of(jobset: J, job: str = "node") -> J:
    (found,) = [each for each in jobset["spec"]["replicatedJobs"] if each["name"] == job]
    pod: J = found["template"]["spec"]["template"]["spec"]
    return pod


def container_of(jobset: J, job: str = "node", name: str = "node") -> J:
    (found,) = [each for each in pod_of(jobset, job)["containers"] if each["name"] == name]
    container: J = found
    return container


def env_of(container: J) -> J:
    return {entry["name"]: entry.get("value") for entry in container.get("env", [])}


@pytest.mark.parametrize("what", TRAININGS)
def test_what_the_sdk_makes_should_be_rendered(what: str) -> None:
    assert jobset_of(TRAININGS[what])["metadata"]["name"] == "job"


def test_every_runtime_should_be_trained_on() -> None:
    assert {training["runtime"] for training in TRAININGS.values()} == set(RUNTIMES)


def test_a_function_should_arrive_on_every_node() -> None:
    node = container_of(jobset_of(TRAININGS["a function"]))
    assert "train(**{'rate': 0.2})" in node["command"][-1]
    assert env_of(node) | {"A": "1", "B": "", "PET_NNODES": "3", "PET_NPROC_PER_NODE": "auto"} == env_of(node)
    assert node["resources"]["limits"] == {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "4"}


def test_a_patch_should_reach_the_pods() -> None:
    jobset = jobset_of(TRAININGS["options"])
    assert jobset["metadata"]["labels"]["team"] == "a"
    pod = pod_of(jobset)
    assert (pod["serviceAccountName"], pod["nodeSelector"]) == ("robot", {"pool": "gpu"})
    assert container_of(jobset)["securityContext"] == {"runAsUser": 1000}


def test_fine_tuning_should_get_its_recipe_and_its_initializers() -> None:
    jobset = jobset_of(TRAININGS["fine-tuning by adapters"])
    assert "lora_finetune_distributed" in container_of(jobset)["command"]
    dataset = env_of(container_of(jobset, "dataset-initializer", "dataset-initializer"))
    assert (dataset["STORAGE_URI"], dataset["ENDPOINT"], dataset["REGION"]) == ("s3://bucket/data", "https://s3", "r")
    assert env_of(container_of(jobset, "model-initializer", "model-initializer"))["ROLE_ARN"] == "arn"


def test_a_launcher_should_start_what_the_sdk_says() -> None:
    jobset = jobset_of(TRAININGS["DeepSpeed"])
    assert container_of(jobset, "launcher")["command"][0] == "mpirun"
    (nodes,) = [each for each in jobset["spec"]["replicatedJobs"] if each["name"] == "node"]
    # The launcher of this runtime is a node itself.
    assert nodes["template"]["spec"]["parallelism"] == 3
