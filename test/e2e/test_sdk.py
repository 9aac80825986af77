"""That the `kubeflow` SDK and `ktrainer` understand each other, over a real API server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import CustomTrainer, TrainerClient
from kubeflow.trainer.options import ActiveDeadlineSeconds

from clusters.api import Api, Object
from clusters.folder import Folder
from clusters.stages import RUNS_FOR
from clusters.wait import wait_for
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, JOBSETS, TRAINJOBS
from support.managers import Manager
from support.sdk import TRAININGS, annotated_pods, options_with_name, train
from support.workplace import LONG, Workplace

pytestmark = pytest.mark.usefixtures("crds")

RUNTIMES = Path(__file__).parents[2] / "config" / "runtimes"


@pytest.fixture(scope="module")
def runtimes(cluster: Folder, manager: Manager) -> Iterator[list[str]]:
    """The runtimes that come with ktrainer, in the cluster; while a manager is there, they can be deleted again."""
    values = [yaml.safe_load(path.read_text()) for path in sorted(RUNTIMES.glob("*-*.yaml"))]
    api = Api(cluster.kubeconfig("admin"))
    names = [value["metadata"]["name"] for value in values]
    for name, value in zip(names, values, strict=True):
        api.apply(CLUSTER_TRAINING_RUNTIMES.path("", name), value)
    yield names
    for name in names:
        api.delete(CLUSTER_TRAINING_RUNTIMES.path("", name))
    # They go when the TrainJobs have gone with their namespaces.
    assert wait_for(lambda: not api.get(CLUSTER_TRAINING_RUNTIMES.path())["items"], 60)
    api.close()


@pytest.fixture
def client(cluster: Folder, namespace: str) -> TrainerClient:
    config = KubernetesBackendConfig(config_file=str(cluster.kubeconfig("admin")), namespace=namespace)
    return TrainerClient(backend_config=config)


def rendered(cluster: Folder, values: list[Object]) -> list[Object]:
    """What `ktrainer render` makes of objects, with their runtimes from the cluster."""
    kubeconfig = str(cluster.kubeconfig("admin"))
    command = [sys.executable, "-m", "ktrainer", "render", "-o", "json", "--kubeconfig", kubeconfig, "-f", "-"]
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": values})
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    items: list[Object] = json.loads(done.stdout)["items"]
    return items


def test_the_sdk_should_see_every_runtime(client: TrainerClient, runtimes: list[str]) -> None:
    seen = {runtime.name: runtime.trainer.framework for runtime in client.list_runtimes()}
    assert set(runtimes) <= set(seen)
    assert seen["torch-distributed"] == "torch"
    assert {seen[name] for name in runtimes if name.startswith("torchtune")} == {"torchtune"}


@pytest.mark.usefixtures("runtimes")
def test_what_the_sdk_creates_should_be_accepted_and_rendered(
    admin: Api, cluster: Folder, namespace: str, client: TrainerClient
) -> None:
    names = {f"job-{number}": training for number, training in enumerate(TRAININGS.values())}
    for name, training in names.items():
        client.train(**{**training, "options": options_with_name(name, training)})
    objects = rendered(cluster, [admin.get(TRAINJOBS.path(namespace, name)) for name in names])
    assert {each["metadata"]["namespace"] for each in objects} == {namespace}
    jobsets = [each for each in objects if each["kind"] == "JobSet"]
    assert [each["metadata"]["name"] for each in jobsets] == list(names)
    for jobset in jobsets:
        # The JobSet's own webhook judges what came out; under its own name the manager has made it already.
        jobset["metadata"]["name"] += "-again"
        admin.create(f"{JOBSETS.path(namespace)}?dryRun=All&fieldValidation=Strict", jobset)
    assert {job.name: job.runtime.name for job in client.list_jobs()} == {
        name: training["runtime"] for name, training in names.items()
    }


@pytest.mark.usefixtures("runtimes")
def test_the_sdk_should_see_a_training_through(client: TrainerClient, workplace: Workplace) -> None:
    name = client.train(
        runtime="torch-distributed",
        trainer=CustomTrainer(func=train, num_nodes=2),
        options=[annotated_pods({RUNS_FOR: LONG})],
    )
    job = client.get_job(name)
    assert (job.name, job.num_nodes, job.runtime.name, job.status) == (name, 2, "torch-distributed", "Created")
    assert [each.name for each in client.list_jobs()] == [name]
    steps: list[dict[str, str | None]] = []
    running = client.wait_for_job_status(
        name,
        status={"Running"},
        timeout=60,
        polling_interval=1,
        callbacks=[lambda job: steps.append({step.name: step.status for step in job.steps})],
    )
    assert steps[-1] == {"node-0": "Running", "node-1": "Running"}
    assert running.status == "Running"
    # Without a status the SDK goes by the pods alone; they may run before the first status is there.
    workplace.until_state("Running", name)
    assert client.get_job(name).status == "Running"
    workplace.end_pods(name)
    done = client.wait_for_job_status(name, timeout=60, polling_interval=1)
    assert done.status == client.get_job(name).status == "Complete"
    client.delete_job(name)
    assert client.list_jobs() == []


@pytest.mark.usefixtures("runtimes")
def test_the_sdk_should_hear_of_a_failure(client: TrainerClient) -> None:
    name = client.train(
        runtime="torch-distributed",
        trainer=CustomTrainer(func=train, num_nodes=2),
        options=[annotated_pods({RUNS_FOR: LONG}), ActiveDeadlineSeconds(3)],
    )
    with pytest.raises(RuntimeError, match=f"TrainJob {name} is Failed"):
        client.wait_for_job_status(name, timeout=60, polling_interval=1)
    assert client.get_job(name).status == "Failed"
