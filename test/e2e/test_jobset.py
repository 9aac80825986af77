from typing import Any

import pytest

from clusters.api import Api, Object, Refused
from clusters.stages import EXIT_CODE, REASON, RUNS_FOR
from support.waiting import Waiter, has_condition


def jobset(name: str, *jobs: Object, **spec: Any) -> Object:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": list(jobs), **spec},
    }


def job(name: str, *, replicas: int = 1, pods: int = 1, annotations: dict[str, str] | None = None) -> Object:
    container = {"name": "node", "image": "registry.example/none"}
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": template}
    return {"name": name, "replicas": replicas, "template": {"spec": spec}}


def collection(namespace: str) -> str:
    return f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{namespace}/jobsets"


def test_a_jobset_of_two_jobs_should_run_to_completed(admin: Api, namespace: str, waiter: Waiter) -> None:
    path = collection(namespace)
    admin.create(path, jobset("train", job("a", pods=2, annotations={RUNS_FOR: "1s"}), job("b", replicas=2)))
    done = waiter.until(f"{path}/train", lambda item: has_condition(item, "Completed"), "the JobSet is Completed")
    succeeded = {each["name"]: each["succeeded"] for each in done["status"]["replicatedJobsStatus"]}
    assert succeeded == {"a": 1, "b": 2}
    pods = admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    assert sorted(pod["metadata"]["name"].rpartition("-")[0] for pod in pods) == [
        "train-a-0-0",
        "train-a-0-1",
        "train-b-0-0",
        "train-b-1-0",
    ]


def test_a_pod_that_fails_should_fail_its_jobset(admin: Api, namespace: str, waiter: Waiter) -> None:
    path = collection(namespace)
    failing = job("a", annotations={EXIT_CODE: "137", REASON: "OOMKilled"})
    admin.create(path, jobset("train", failing, failurePolicy={"maxRestarts": 0}))
    waiter.until(f"{path}/train", lambda item: has_condition(item, "Failed"), "the JobSet is Failed")
    (pod,) = admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
    state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (137, "OOMKilled")


def test_the_webhook_should_refuse_what_the_schema_allows(admin: Api, namespace: str) -> None:
    # Both names are valid by themselves; only the webhook knows that the pods' names would be too long.
    with pytest.raises(Refused, match=r'admission webhook "vjobset.kb.io" denied the request'):
        admin.create(collection(namespace), jobset("j" * 50, job("r" * 50)))


def test_the_webhook_should_set_its_defaults(admin: Api, namespace: str) -> None:
    made = admin.create(collection(namespace), jobset("train", job("a"), suspend=True))
    assert made["spec"]["network"]["enableDNSHostnames"] is True
    assert made["spec"]["replicatedJobs"][0]["template"]["spec"]["completionMode"] == "Indexed"
