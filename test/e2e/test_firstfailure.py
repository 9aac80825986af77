"""The status of a failed TrainJob tells which pod failed first, on a real control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clusters.stages import EXIT_CODE, REASON, RUNS_FOR
from clusters.wait import wait_for
from support.apiobjects import replicated_job, runtime
from support.waiting import has_condition

if TYPE_CHECKING:
    from clusters.api import Api, Object
    from support.managers import Manager
    from support.waiting import Waiter

API = "/apis/trainer.kubeflow.org/v1alpha1"


def job(name: str, **annotations: str) -> Object:
    """A replicated job whose pods end as the annotations say."""
    made = replicated_job(name)
    spec = made["template"]["spec"]
    spec["backoffLimit"] = 0
    spec["template"]["metadata"] = {"annotations": annotations}
    spec["template"]["spec"]["restartPolicy"] = "Never"
    return made


def failure_count(manager: Manager) -> float:
    """How many TrainJobs the manager has seen fail."""
    series = 'ktrainer_trainjob_run_seconds_count{outcome="Failed"} '
    return float(next(line for line in manager.scrape()[1].splitlines() if line.startswith(series)).split()[-1])


def test_the_pod_that_failed_first_should_be_told_and_not_those_that_went_with_it(
    manager: Manager, admin: Api, namespace: str, waiter: Waiter
) -> None:
    slow = job("slow", **{RUNS_FOR: "600s"})
    bad = job("bad", **{RUNS_FOR: "3s", EXIT_CODE: "137", REASON: "OOMKilled"})
    failure_policy = {"maxRestarts": 0}
    item = runtime(template={"spec": {"replicatedJobs": [slow, bad], "failurePolicy": failure_policy}})
    folder = f"{API}/namespaces/{namespace}"
    admin.create(f"{folder}/trainingruntimes", item)
    trainjob = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo"},
        "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": item["metadata"]["name"]}},
    }
    # TrainJobs of earlier tests may fail while their namespaces go.
    failures = failure_count(manager)
    admin.create(f"{folder}/trainjobs", trainjob)
    path = f"{folder}/trainjobs/demo"
    failed = waiter.until(path, lambda item: has_condition(item, "Failed"), "the TrainJob has failed")
    first = failed["status"]["firstFailure"]
    assert first["pod"].startswith("demo-bad-0-0-")
    assert first["node"]
    assert {name: first[name] for name in ("job", "container", "exitCode", "signal", "reason")} == {
        "job": "bad",
        "container": "node",
        "exitCode": 137,
        "signal": 9,
        "reason": "OOMKilled",
    }
    # The status is there a moment before who wrote it has noted that.
    assert wait_for(lambda: failure_count(manager) > failures, 10)
