"""Training pods that report their progress: TrainJobs on fake nodes, real tokens, and the way to the server.

The nodes are fake, so nothing runs in a pod; the test speaks in its place, with a token that the API server has issued
for it as a kubelet would have it.
"""

from __future__ import annotations

import http.client
import json
import ssl
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from clusters.ports import LOOPBACK
from clusters.stages import RUNS_FOR
from ktrainer.api.progress import audience_of, status_path_of
from ktrainer.kube.identity import ObjectKey

if TYPE_CHECKING:
    from clusters.api import Api, Object
    from support.waiting import Waiter

LONG = "3600s"
"""Longer than any test."""


def training_runtime(name: str, runs_for: str) -> Object:
    """A runtime with one job of one pod, which ends by itself."""
    pod = {
        "metadata": {"annotations": {RUNS_FOR: runs_for}},
        "spec": {"containers": [{"name": "node", "image": "registry.example/none"}]},
    }
    job = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": pod},
        },
    }
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": [job]}}},
    }


def trainjob(name: str, **spec: Any) -> Object:
    """A TrainJob of the runtime of its name."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": name, "kind": "TrainingRuntime"}, **spec},
    }


@dataclass(frozen=True)
class Trainee:
    """One TrainJob, and one pod of it that reports."""

    admin: Api
    key: ObjectKey
    pod: Object
    port: int
    context: ssl.SSLContext
    """Trusts what the pod is told to trust."""

    @property
    def path(self) -> str:
        """Where the TrainJob is."""
        return path_of_all("trainjobs", self.key.namespace) + f"/{self.key.name}"

    def status(self) -> Object:
        """What is known of the training."""
        found: Object = self.admin.get(self.path).get("status", {}).get("trainerStatus", {})
        return found

    def token(self, audience: str = "", pod: Object | None = None) -> str:
        """A token of the pod, or another, as a kubelet would ask for."""
        return issue_token(self.admin, pod or self.pod, audience or audience_of(self.key))

    def report(self, percentage: int, token: str | None = None) -> tuple[int, Object]:
        """Report some progress."""
        status = {"progressPercentage": percentage, "lastUpdatedTime": rfc3339_now()}
        return self.post({"trainerStatus": status}, token)

    def post(self, body: Object | bytes, token: str | None = None, path: str = "") -> tuple[int, Object]:
        """Send anything; without a token, with that of the pod."""
        bearer = self.token() if token is None else token
        return post(self.port, path or status_path_of(self.key), body, bearer, self.context)


def start_training(admin: Api, waiter: Waiter, port: int, name: str, runs_for: str = LONG) -> Trainee:
    """Make a TrainJob, and wait for its pod and for what it is to trust."""
    namespace = waiter.namespace
    admin.create(path_of_all("trainingruntimes", namespace), training_runtime(name, runs_for))
    admin.create(path_of_all("trainjobs", namespace), trainjob(name))
    pod = pod_of(waiter, name)
    config_map = waiter.until(
        f"/api/v1/namespaces/{namespace}/configmaps/{name}-tls-config", lambda _: True, "there is something to trust"
    )
    context = ssl.create_default_context(cadata=config_map["data"]["ca.crt"])
    return Trainee(admin, ObjectKey(namespace, name), pod, port, context)


def path_of_all(plural: str, namespace: str) -> str:
    """A collection of ours."""
    return f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/{plural}"


def pod_of(waiter: Waiter, name: str) -> Object:
    """The pod of a TrainJob, once it is there."""
    path = f"/api/v1/namespaces/{waiter.namespace}/pods?labelSelector=jobset.sigs.k8s.io/jobset-name%3D{name}"
    pods = waiter.until(path, lambda found: bool(found["items"]), f"{name} has a pod")
    pod: Object = pods["items"][0]
    return pod


def issue_token(admin: Api, pod: Object | None, audience: str, namespace: str = "") -> str:
    """A token of a pod's service account for an audience, bound to the pod; without a pod, bound to nothing."""
    spec: Object = {"audiences": [audience], "expirationSeconds": 600}
    if pod is not None:
        meta = pod["metadata"]
        namespace = meta["namespace"]
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
    made = admin.create(
        f"/api/v1/namespaces/{namespace}/serviceaccounts/default/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec},
    )
    token: str = made["status"]["token"]
    return token


def post(
    port: int, path: str, body: Object | bytes, token: str, context: ssl.SSLContext, method: str = "POST"
) -> tuple[int, Object]:
    """Send a request to the progress server; return its status and what it says."""
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    with closing(http.client.HTTPSConnection(LOOPBACK, port, timeout=30, context=context)) as connection:
        connection.request(method, path, body if isinstance(body, bytes) else json.dumps(body), headers)
        answer = connection.getresponse()
        document: Object = json.loads(answer.read())
        return answer.status, document


def rfc3339_now() -> str:
    """The time as a training would tell it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
