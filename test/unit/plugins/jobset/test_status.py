from typing import Any

import pytest

from ktrainer.api.trainjobstatus import JobStatus
from ktrainer.app.documents import run_now
from ktrainer.framework.workload import WorkloadStatus
from ktrainer.kube.conditions import Condition
from ktrainer.plugins.jobset.plugin import JobSet
from ktrainer.plugins.jobset.status import status_of
from support.training import dependencies, owned, trainjob


def jobset(**status: Any) -> dict[str, Any]:
    jobs = [{"name": "node", "replicas": 1}, {"name": "aux"}]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "demo", "namespace": "team-a"},
        "spec": {"replicatedJobs": jobs},
        "status": status,
    }


@pytest.mark.parametrize(("type_", "ours"), [("Completed", "Complete"), ("Failed", "Failed")])
def test_the_end_of_a_jobset_should_be_taken_over_with_its_words(type_: str, ours: str) -> None:
    ended = {
        "type": type_,
        "status": "True",
        "reason": "R",
        "message": "m",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    others = [{"type": "Suspended", "status": "True"}, {"type": "StartupPolicyCompleted", "status": "True"}]
    (condition,) = status_of(jobset(conditions=[*others, ended])).finished
    assert condition == Condition(ours, "True", "R", "m", "2026-01-02T03:04:05Z")


def test_a_condition_that_is_not_true_should_not_count() -> None:
    assert status_of(jobset(conditions=[{"type": "Failed", "status": "False"}])).finished == ()


@pytest.mark.parametrize("value", ["True", "False"])
def test_a_jobset_that_is_held_should_say_so(value: str) -> None:
    assert status_of(jobset(conditions=[{"type": "Suspended", "status": value}])).is_suspended == (value == "True")


def test_jobs_should_be_reported_in_order_with_their_zeros() -> None:
    jobs = [{"name": "b", "ready": 1, "succeeded": 2, "failed": 3, "active": 4, "suspended": 5}, {"name": "a"}]
    status = status_of(jobset(replicatedJobsStatus=jobs, restarts=2))
    assert status.jobs == (
        JobStatus(name="b", ready=1, succeeded=2, failed=3, active=4, suspended=5),
        JobStatus(name="a", ready=0, succeeded=0, failed=0, active=0, suspended=0),
    )
    assert status.restarts == 2
    assert status.replicas == {"node": 1, "aux": 1}


def test_a_jobset_without_a_status_should_have_nothing_to_report() -> None:
    made = jobset()
    del made["status"]
    assert status_of(made) == WorkloadStatus(replicas={"node": 1, "aux": 1})


def test_a_jobset_that_is_not_there_yet_should_be_no_error() -> None:
    assert run_now(JobSet(dependencies()).status(trainjob())) is None
    assert run_now(JobSet(dependencies(owned(jobset(restarts=3)))).status(trainjob())) is not None


def test_a_jobset_of_somebody_else_should_say_nothing_about_the_trainjob() -> None:
    foreign = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": jobset()["metadata"]}
    assert run_now(JobSet(dependencies(foreign)).status(trainjob())) is None


def test_jobsets_should_be_watched_without_a_selector() -> None:
    assert [(watch.resource.plural, watch.labelled) for watch in JobSet(dependencies()).watches()] == [
        ("jobsets", False)
    ]
