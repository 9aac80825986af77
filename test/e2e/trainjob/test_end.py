"""How a TrainJob ends, and that it stays ended: deadline, time to live, and JobSets that vanish."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from clusters.stages import RUNS_FOR
from clusters.wait import wait_for
from ktrainer.api.resources import JOBSETS, TRAINJOBS
from support.trail import Trail
from support.workplace import Workplace, states_of, unattended

if TYPE_CHECKING:
    from clusters.api import Object
    from clusters.folder import Folder
    from support.managers import Manager

pytestmark = pytest.mark.usefixtures("manager")


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def flipped(trainjob: Object, condition: str) -> datetime:
    """When a condition came to say what it says."""
    found = [each for each in trainjob["status"]["conditions"] if each["type"] == condition]
    return instant(found[0]["lastTransitionTime"])


def wait_until(moment: datetime, seconds: float) -> None:
    """Wait until some seconds after a moment."""
    assert wait_for(lambda: (datetime.now(UTC) - moment).total_seconds() > seconds, seconds + 10)


def run_another(workplace: Workplace, name: str) -> None:
    """Let another TrainJob come and be held: whatever happened before has been dealt with when that is so."""
    workplace.submit(name, suspend=True)
    workplace.until_state("Suspended", name)


def test_a_trainjob_beyond_its_deadline_should_fail_and_then_lose_its_jobset(
    cluster: Folder, workplace: Workplace
) -> None:
    trail = Trail(cluster, workplace.namespace)
    workplace.submit(activeDeadlineSeconds=2)
    failed = workplace.until_state("Failed")
    assert states_of(failed)["Failed"] == "True DeadlineExceeded"
    workplace.until_gone(JOBSETS)
    told = trail.writes("trainjobs", "ktrainer-manager")[-1]
    (deleted,) = (each for each in trail.writes("jobsets", "ktrainer-manager") if each.verb == "delete")
    assert told.body["status"]["state"] == "Failed"
    assert told.answered_at < deleted.received_at


def test_a_deadline_should_start_anew_with_a_resume(workplace: Workplace) -> None:
    created = instant(workplace.submit(activeDeadlineSeconds=4)["metadata"]["creationTimestamp"])
    workplace.until_jobset()
    workplace.change(suspend=True)
    workplace.until_state("Suspended")
    wait_until(created, 6)
    assert workplace.trainjob()["status"]["state"] == "Suspended"
    workplace.change(suspend=False)
    failed = workplace.until_state("Failed")
    assert states_of(failed)["Failed"] == "True DeadlineExceeded"
    assert 4 <= (flipped(failed, "Failed") - flipped(failed, "Suspended")).total_seconds() <= 7


def test_a_finished_trainjob_should_be_deleted_when_its_time_is_up(workplace: Workplace) -> None:
    workplace.submit(ttlSecondsAfterFinished=3, pods={RUNS_FOR: "1s"})
    workplace.until_state("Complete")
    workplace.until_gone(TRAINJOBS)


def test_deadline_and_time_to_live_should_survive_a_restart(workplace: Workplace, manager: Manager) -> None:
    late = instant(workplace.submit("late", activeDeadlineSeconds=5)["metadata"]["creationTimestamp"])
    workplace.submit("old", ttlSecondsAfterFinished=5, pods={RUNS_FOR: "1s"})
    workplace.until_jobset("late")
    workplace.until_state("Complete", "old")
    manager.crash()
    wait_until(late, 6)
    assert workplace.trainjob("late")["status"]["state"] != "Failed"
    assert workplace.trainjob("old")["status"]["state"] == "Complete"
    manager.start()
    failed = workplace.until_state("Failed", "late")
    assert states_of(failed)["Failed"] == "True DeadlineExceeded"
    workplace.until_gone(TRAINJOBS, "old")
    manager.wait_ready()


def test_a_jobset_that_vanishes_should_be_built_again(workplace: Workplace) -> None:
    workplace.submit()
    workplace.until_state("Running")
    former = workplace.jobset()["metadata"]["uid"]
    workplace.admin.delete(workplace.path(JOBSETS, "train"))
    workplace.waiter.until(
        workplace.path(JOBSETS, "train"), lambda jobset: jobset["metadata"]["uid"] != former, "there is another JobSet"
    )
    workplace.until_state("Running")


def test_a_jobset_that_ended_and_vanished_in_one_moment_should_count_as_ended(
    workplace: Workplace, manager: Manager
) -> None:
    workplace.add_runtime(unattended(ttlSecondsAfterFinished=0))
    workplace.submit(runtime="unattended")
    workplace.until_jobset()
    workplace.report(ready=1)
    workplace.until_state("Running")
    manager.freeze()
    workplace.report(end="Completed", succeeded=1)
    workplace.admin.delete(workplace.path(JOBSETS, "train"))
    manager.thaw()
    done = workplace.until_state("Complete")
    assert states_of(done)["Complete"] == "True ByHand"
    run_another(workplace, "marker")
    assert not workplace.has(JOBSETS)


@pytest.mark.parametrize("template", [{"ttlSecondsAfterFinished": 60}, {}], ids=["with a time to live", "without"])
def test_a_jobset_that_vanished_unseen_should_be_built_again_unless_it_may_have_ended(
    workplace: Workplace, manager: Manager, template: Object
) -> None:
    workplace.add_runtime(unattended(**template))
    workplace.submit(runtime="unattended")
    workplace.until_jobset()
    workplace.report(ready=1)
    workplace.until_state("Running")
    manager.crash()
    workplace.report(end="Completed", succeeded=1)
    workplace.admin.delete(workplace.path(JOBSETS, "train"))
    manager.start()
    if template:
        assert states_of(workplace.until_state("Failed"))["Failed"] == "True JobSetDeleted"
        manager.wait_ready()
        run_another(workplace, "marker")
        assert not workplace.has(JOBSETS)
    else:
        workplace.until_jobset()
        manager.wait_ready()


def test_an_end_should_never_be_taken_back(workplace: Workplace, manager: Manager) -> None:
    workplace.add_runtime(unattended())
    workplace.submit(runtime="unattended")
    workplace.until_jobset()
    workplace.report(end="Failed", failed=1)
    failed = workplace.until_state("Failed")
    workplace.admin.merge(workplace.path(JOBSETS, "train", "status"), {"status": {"conditions": []}})
    workplace.report(ready=1)
    run_another(workplace, "first")
    assert workplace.trainjob()["status"] == failed["status"]
    workplace.admin.delete(workplace.path(JOBSETS, "train"))
    run_another(workplace, "second")
    manager.crash()
    manager.start()
    manager.wait_ready()
    run_another(workplace, "third")
    assert workplace.trainjob()["status"] == failed["status"]
    assert not workplace.has(JOBSETS)
