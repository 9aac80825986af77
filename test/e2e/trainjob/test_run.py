"""From a TrainJob to running pods and to their end, on a real control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.audit import events_of
from clusters.stages import EXIT_CODE, REASON, RUNS_FOR
from ktrainer.api.resources import TRAINING_RUNTIMES
from support.workplace import Workplace, patched, states_of, torch_runtime

if TYPE_CHECKING:
    from clusters.api import Object
    from clusters.folder import Folder
    from support.managers import Manager

pytestmark = pytest.mark.usefixtures("manager")


def writes(cluster: Folder, agent: str, namespace: str) -> list[str]:
    """What a program has written in a namespace, events aside."""
    return [
        f"{event['verb']} {event['objectRef']['resource']} {event['objectRef'].get('subresource', '')}".strip()
        for event in events_of(cluster.file("audit", "audit.log"))
        if agent in event.get("userAgent", "")
        and event.get("objectRef", {}).get("namespace") == namespace
        and event["verb"] in {"create", "update", "patch", "delete"}
        and event["objectRef"]["resource"] != "events"
    ]


def test_a_trainjob_should_run_to_complete_in_five_writes(cluster: Folder, workplace: Workplace) -> None:
    workplace.submit(pods={RUNS_FOR: "3s"})
    running = workplace.until_state("Running")
    assert (states_of(running), running["status"]["observedGeneration"]) == ({}, 1)
    done = workplace.until_state("Complete")
    assert states_of(done) == {
        "ResourcesReady": "True Applied",
        "Running": "False Finished",
        "Complete": "True AllJobsCompleted",
    }
    status = done["status"]
    assert status["nodes"] == 2
    assert status["jobsStatus"] == [
        {"name": "node", "ready": 0, "succeeded": 1, "failed": 0, "active": 0, "suspended": 0}
    ]
    assert status["startTime"] <= status["completionTime"]
    assert "finalizers" not in done["metadata"]
    # The runtime's finalizer is the other controller's, and there is one for all TrainJobs.
    own = [each for each in writes(cluster, "ktrainer-manager", workplace.namespace) if "trainingruntimes" not in each]
    assert sorted(own) == ["create configmaps", "patch jobsets", *["patch trainjobs status"] * 3]


def test_a_pod_that_fails_should_fail_its_trainjob(workplace: Workplace) -> None:
    workplace.submit(pods={RUNS_FOR: "1s", EXIT_CODE: "137", REASON: "OOMKilled"})
    failed = workplace.until_state("Failed")
    assert states_of(failed)["Failed"].startswith("True ")
    assert failed["status"]["completionTime"] is not None


def test_what_failed_first_should_be_told_although_the_jobset_starts_anew(workplace: Workplace) -> None:
    workplace.add_runtime(torch_runtime("patient", failurePolicy={"maxRestarts": 1}))
    workplace.submit(runtime="patient")
    workplace.until_state("Running")
    workplace.end_pods(code=9)
    told = workplace.until(lambda job: "firstFailure" in job["status"], "it tells what failed")
    assert "Failed" not in states_of(told)
    assert (told["status"]["firstFailure"]["job"], told["status"]["firstFailure"]["exitCode"]) == ("node", 9)

    def is_again(job: Object) -> bool:
        attempts = [pod["metadata"]["labels"]["jobset.sigs.k8s.io/restart-attempt"] for pod in workplace.pods()]
        return job["status"]["state"] == "Running" and attempts == ["1", "1"]

    workplace.until(is_again, "it runs again")
    workplace.end_pods()
    assert workplace.until_state("Complete")["status"]["firstFailure"] == told["status"]["firstFailure"]


def test_a_suspended_trainjob_should_start_when_it_is_resumed(workplace: Workplace) -> None:
    workplace.submit(suspend=True, pods={RUNS_FOR: "1s"})
    held = workplace.until_state("Suspended")
    assert states_of(held)["Suspended"] == "True Suspended"
    assert workplace.jobset()["spec"]["suspend"] is True
    workplace.change(suspend=False)
    done = workplace.until_state("Complete")
    assert states_of(done)["Suspended"] == "False Resumed"
    types = [each["type"] for each in done["status"]["conditions"]]
    assert types.index("Suspended") < types.index("Complete")


def test_a_patch_should_reach_the_pods_although_it_came_while_they_were_stopping(workplace: Workplace) -> None:
    workplace.submit(pods={"test/run": "first"})
    workplace.until_state("Running")
    workplace.change(suspend=True)
    # Its pods cannot have stopped yet; Kueue, which evicts in this way, does not wait for that either.
    workplace.change(runtimePatches=patched({RUNS_FOR: "600s", "test/run": "second"}))
    workplace.change(suspend=False)

    def runs() -> set[str]:
        return {pod["metadata"]["annotations"]["test/run"] for pod in workplace.pods()}

    workplace.until(lambda job: job["status"]["state"] == "Running" and runs() == {"second"}, "it runs as patched")
    assert len(workplace.pods()) == 2


def test_a_trainjob_should_live_on_without_its_runtime_and_through_a_crash(
    workplace: Workplace, manager: Manager
) -> None:
    workplace.submit()
    workplace.until(lambda job: "runtimeDigest" in job.get("status", {}), "it has a snapshot")
    manager.crash()
    workplace.admin.delete(workplace.path(TRAINING_RUNTIMES, "torch"))
    manager.start()
    workplace.until_state("Running")
    workplace.end_pods()
    done = workplace.until_state("Complete")
    assert states_of(done)["ResourcesReady"] == "True Applied"
    workplace.until_gone(TRAINING_RUNTIMES, "torch")
    manager.wait_ready()


def test_a_runtime_that_is_edited_should_change_no_trainjob_that_exists(workplace: Workplace) -> None:
    workplace.submit(suspend=True)
    before = workplace.until_state("Suspended")["status"]["runtimeDigest"]
    edited = torch_runtime()
    pod = edited["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    image = pod["containers"][0]["image"]
    pod["containers"][0]["image"] = "registry.example/edited"
    workplace.admin.apply(workplace.path(TRAINING_RUNTIMES, "torch"), edited)
    workplace.submit("later")
    workplace.change(suspend=False)
    after = workplace.until_state("Running")["status"]["runtimeDigest"]
    assert workplace.until_state("Running", "later")["status"]["runtimeDigest"] != before == after
    images = {
        name: {pod["spec"]["containers"][0]["image"] for pod in workplace.pods(name)} for name in ("train", "later")
    }
    assert images == {"train": {image}, "later": {"registry.example/edited"}}
