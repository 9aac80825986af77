"""Strangers try what they can on the servers of a manager, and on what it makes."""

import asyncio
import base64
import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusters.api import Api, Object, Refused
from clusters.folder import Folder
from clusters.wait import wait_for
from ktrainer.api.progress import audience_of, status_path_of
from ktrainer.kube.identity import ObjectKey
from support.attacks import Attempt, admitting, dawdle
from support.figures import Figures, scaled
from support.managers import Manager, running_manager
from support.progress import LONG, Trainee, issue_token, path_of_all, start_training, training_runtime, trainjob
from support.waiting import Waiter

DAWDLERS = 200
ROUNDS = scaled(3, 100)
MOST_BODY_BYTES = 64 * 1024
DAWDLE_SECONDS = 32.0
"""How long a server waits for a head, at most; progress is less patient."""
SLACK_SECONDS = 8.0
"""For two hundred TLS handshakes on a busy machine."""

METRICS_READER = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "test-metrics-reader"},
    "rules": [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}],
}


@pytest.fixture
def manager(cluster: Folder, crds: list[Object], tmp_path: Path) -> Iterator[Manager]:
    with (
        closing(Api(cluster.kubeconfig("admin"))) as api,
        running_manager(
            cluster,
            api,
            tmp_path / "manager",
            gates="TrainJobStatus=true",
            configuration={"metrics": {"auth": {"enabled": True}}},
            flags=("--log-level=debug",),
        ) as manager,
    ):
        yield manager


@pytest.fixture
def reader(admin: Api, namespace: str) -> Iterator[str]:
    """A token of somebody who may read the metrics."""
    collection = "/apis/rbac.authorization.k8s.io/v1"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    subject = {"kind": "ServiceAccount", "name": "reader", "namespace": namespace}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "test-metrics-reader"},
        "subjects": [subject],
    }
    admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", account)
    admin.apply(f"{collection}/clusterroles/test-metrics-reader", METRICS_READER)
    admin.create(f"{collection}/clusterrolebindings", binding)
    made = admin.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts/reader/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 600}},
    )
    yield made["status"]["token"]
    admin.delete(f"{collection}/clusterrolebindings/{namespace}")
    admin.delete(f"{collection}/clusterroles/test-metrics-reader")


def attempts_of(admin: Api, trainee: Trainee, other: Trainee, metrics: int) -> list[Attempt]:
    """All that must be refused, each with the reason why it could be let through."""
    path, key, progress = status_path_of(trainee.key), trainee.key, trainee.port
    audience = audience_of(key)
    issuer = admin.get("/.well-known/openid-configuration")["issuer"]
    good, weak = trainee.token(), trainee.token(audience=issuer)
    report = b'{"trainerStatus": {"progressPercentage": 66, "lastUpdatedTime": "2026-01-01T00:00:00Z"}}'
    large = report + b" " * MOST_BODY_BYTES
    elsewhere = status_path_of(ObjectKey("kube-system", key.name))
    return [
        Attempt(metrics, "GET", "/metrics"),
        Attempt(metrics, "GET", "/metrics", "nonsense"),
        Attempt(metrics, "GET", "/metrics", weak),
        Attempt(metrics, "GET", "/metrics", good),
        Attempt(metrics, "POST", "/metrics", good, large),
        Attempt(progress, "POST", path, "", report),
        Attempt(progress, "POST", path, "nonsense", report),
        Attempt(progress, "POST", path, weak, report),
        Attempt(progress, "POST", path, trainee.token(pod=other.pod), report),
        Attempt(progress, "POST", path, issue_token(admin, None, audience, key.namespace), report),
        Attempt(progress, "POST", path, other.token(), report),
        Attempt(progress, "POST", elsewhere, good, report),
        Attempt(progress, "POST", path.replace(key.name, f"{key.name}/../{other.key.name}"), good, report),
        Attempt(progress, "POST", path.replace(key.name, f"..%2F{key.name}"), good, report),
        Attempt(progress, "PUT", path, good, report),
        Attempt(progress, "GET", path, good),
        Attempt(progress, "POST", path, good, large),
        Attempt(progress, "POST", path, good, large, chunked=True),
        Attempt(progress, "POST", path, good, b"[" * 1000),
    ]


def secrets_of(admin: Api, namespace: str) -> set[str]:
    """Every line of every key that the manager has made."""
    paths = ["/api/v1/namespaces/kubeflow-system/secrets/kubeflow-trainer-webhook-cert"]
    paths += [f"/api/v1/namespaces/{namespace}/secrets/mpi-mpi-ssh-auth"]
    keys = [
        base64.b64decode(value).decode()
        for path in paths
        for name, value in admin.get(path)["data"].items()
        if name.endswith((".key", "privatekey"))
    ]
    return {line for key in keys for line in key.splitlines() if line and "-----" not in line}


@dataclass(frozen=True)
class Scene:
    """Two TrainJobs that may report, one with keys, and what strangers do to them."""

    trainee: Trainee
    other: Trainee
    attempts: list[Attempt]


def set_scene(admin: Api, waiter: Waiter, manager: Manager) -> Scene:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    other = start_training(admin, waiter, manager.ports.progress, "other")
    make_mpi_job(admin, waiter.namespace)
    path = f"/api/v1/namespaces/{waiter.namespace}/secrets/mpi-mpi-ssh-auth"
    waiter.until(path, lambda _: True, "there are keys")
    return Scene(trainee, other, attempts_of(admin, trainee, other, manager.ports.metrics))


def leaks_of(admin: Api, manager: Manager, scene: Scene, reader: str) -> list[str]:
    """The keys and tokens that are in the manager's log."""
    tokens = {attempt.token for attempt in scene.attempts} | {reader}
    log = str(manager.log())
    return [each for each in tokens | secrets_of(admin, scene.trainee.key.namespace) if len(each) > 16 and each in log]


async def test_T43_strangers_should_get_nothing_and_disturb_nobody(
    admin: Api, waiter: Waiter, manager: Manager, reader: str, figures: Figures
) -> None:
    scene = await asyncio.to_thread(set_scene, admin, waiter, manager)
    trainee, ports = scene.trainee, manager.ports
    doors = [ports.progress, ports.metrics, ports.webhook]
    most_seconds = DAWDLE_SECONDS + SLACK_SECONDS
    answers: Counter[int] = Counter()
    subject = await asyncio.to_thread(admin.get, trainee.path)
    async with admitting(ports.webhook, subject, per_second=20) as admission, asyncio.TaskGroup() as tasks:
        dawdlers = [
            tasks.create_task(dawdle(door, most_seconds)) for door in itertools.islice(itertools.cycle(doors), DAWDLERS)
        ]
        for attempt in scene.attempts * ROUNDS:
            answers[await asyncio.to_thread(attempt.make)] += 1
    figures.exactly("attempts that succeeded", sum(count for code, count in answers.items() if code < 400), 0)
    figures.exactly("attempts that were a fault of ours", answers[500], 0)
    figures.exactly("dawdlers that were put up with", sum(each.result() >= most_seconds for each in dawdlers), 0)
    figures.exactly("reviews that failed meanwhile", len(admission.failures), 0)
    figures.at_most("p99 of admission meanwhile", admission.quantile(0.99) * 1000, 200, "ms")
    assert await asyncio.to_thread(trainee.status) == await asyncio.to_thread(scene.other.status) == {}
    # Who may, still can.
    assert await asyncio.to_thread(wait_for, lambda: trainee.report(5)[0] == 200, 15)
    assert (await asyncio.to_thread(manager.scrape, reader))[0] == 200
    leaked = await asyncio.to_thread(leaks_of, admin, manager, scene, reader)
    figures.exactly("keys and tokens in the log", len(leaked), 0)


def test_T43_a_foreign_secret_of_our_name_should_be_left_alone(
    admin: Api, waiter: Waiter, manager: Manager, figures: Figures
) -> None:
    namespace = waiter.namespace
    path = f"/api/v1/namespaces/{namespace}/secrets"
    keys = {"ssh-privatekey": "theirs", "ssh-publickey": "theirs"}
    metadata = {"name": "mpi-mpi-ssh-auth", "labels": {"trainer.kubeflow.org/trainjob-name": "mpi"}}
    secret = admin.create(path, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys})
    make_mpi_job(admin, namespace)
    job = waiter.until(
        path_of_all("trainjobs", namespace) + "/mpi",
        lambda job: resources_of(job).get("status") == "False",
        "it is told that the Secret is not ours",
    )
    assert resources_of(job)["reason"] == "ApplyRefused"
    assert "mpi-mpi-ssh-auth" in resources_of(job)["message"]
    with pytest.raises(Refused, match="not found"):
        admin.get(f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets/mpi")
    after = admin.get(f"{path}/mpi-mpi-ssh-auth")
    figures.exactly("writes to the foreign Secret", int(after != secret), 0)


def make_mpi_job(admin: Api, namespace: str) -> None:
    """Make a TrainJob that needs keys."""
    runtime = training_runtime("mpi", LONG)
    (launcher,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    node = {"name": "node", "template": {"spec": launcher["template"]["spec"]}}
    runtime["spec"]["mlPolicy"] = {"numNodes": 1, "mpi": {"mpiImplementation": "OpenMPI"}}
    runtime["spec"]["template"]["spec"]["replicatedJobs"] = [launcher | {"name": "launcher"}, node]
    admin.create(path_of_all("trainingruntimes", namespace), runtime)
    admin.create(path_of_all("trainjobs", namespace), trainjob("mpi"))


def resources_of(job: Object) -> Object:
    """The condition that tells about the objects of a TrainJob."""
    conditions: list[Object] = job.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == "ResourcesReady"), {})
