"""What the status of a TrainJob says and how often it is written, while the test reports for the JobSet."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from ktrainer.api.resources import API_VERSION, JOBSETS, TRAINJOBS
from support.trail import Trail
from support.workplace import Workplace, states_of, unattended

if TYPE_CHECKING:
    from clusters.folder import Folder
    from support.trail import Write

pytestmark = pytest.mark.usefixtures("manager")

COALESCING_SECONDS = 0.25


@pytest.fixture
def started(workplace: Workplace) -> Workplace:
    """A TrainJob whose JobSet is there, and whose status says so."""
    workplace.add_runtime(unattended())
    workplace.submit(runtime="unattended")
    workplace.until_reason("ResourcesReady", "True Applied")
    workplace.until_jobset()
    return workplace


def status_writes(trail: Trail) -> list[Write]:
    return [each for each in trail.writes("trainjobs", "ktrainer-manager") if each.verb == "patch"]


def active_of(trainjob: dict[str, dict[str, list[dict[str, int]]]]) -> int:
    return trainjob["status"].get("jobsStatus", [{"active": 0}])[0]["active"]


def test_a_burst_of_reports_should_be_one_write(cluster: Folder, started: Workplace) -> None:
    trail = Trail(cluster, started.namespace)
    began = time.monotonic()
    for number in range(20):
        started.report(active=number + 1)
    seconds = time.monotonic() - began
    started.until(lambda job: active_of(job) == 20, "the last report is told")
    assert 1 <= len(status_writes(trail)) <= 1 + seconds / COALESCING_SECONDS
    assert seconds < 20 * COALESCING_SECONDS / 2, "the reports came too slowly to prove anything"


def test_an_end_should_be_written_at_once_and_take_along_what_waits(cluster: Folder, started: Workplace) -> None:
    trail = Trail(cluster, started.namespace)
    started.report(active=1)
    started.report(end="Completed", succeeded=1)
    done = started.until_state("Complete")
    assert done["status"]["jobsStatus"][0]["succeeded"] == 1
    (written,) = status_writes(trail)
    told = max(each.answered_at for each in trail.writes("jobsets") if each.agent != "ktrainer-manager")
    assert written.received_at - told < COALESCING_SECONDS


def test_what_others_write_into_the_status_should_stay(started: Workplace) -> None:
    now = "2026-01-02T03:04:05Z"
    checked = {"type": "acme.io/Checked", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": now}
    progress = {"progressPercentage": 42, "lastUpdatedTime": now}
    for manager, status in (("acme", {"conditions": [checked]}), ("trainer-status", {"trainerStatus": progress})):
        body = {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": "train"}, "status": status}
        started.admin.apply(started.path(TRAINJOBS, "train", "status"), body, manager)
    started.report(ready=1)
    started.until_state("Running")
    started.change(suspend=True)
    started.until_state("Suspended")
    started.change(suspend=False)
    started.until_reason("Suspended", "False Resumed")
    started.report(end="Failed", failed=1)
    failed = started.until_state("Failed")
    assert checked in failed["status"]["conditions"]
    assert failed["status"]["trainerStatus"] == progress


def test_the_conditions_should_follow_the_jobset(started: Workplace) -> None:
    assert states_of(started.trainjob()) == {"ResourcesReady": "True Applied", "Running": "False Pending"}
    started.report(ready=1)
    assert states_of(started.until_state("Running")) == {}
    started.admin.merge(started.path(JOBSETS, "train", "status"), {"status": {"restarts": 1}})
    started.report()
    started.until_reason("Running", "False Restarting")
    started.report(succeeded=1)
    started.until_state("Running")
    started.change(suspend=True)
    held = started.until_state("Suspended")
    assert states_of(held)["Running"] == "False Suspended"
    assert [each["type"] for each in held["status"]["conditions"]].index("Suspended") == 0
    started.report(end="Failed", failed=1)
    failed = started.until_state("Failed")
    assert (states_of(failed)["Failed"], states_of(failed)["Running"]) == ("True ByHand", "False Finished")
    (told,) = started.jobset()["status"]["conditions"]
    (copied,) = (each for each in failed["status"]["conditions"] if each["type"] == "Failed")
    assert {field: copied[field] for field in told} == told
