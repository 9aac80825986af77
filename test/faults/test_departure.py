"""JobSets delete themselves around their end, while the manager is there or not."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.api import Api
from clusters.folder import Folder
from clusters.stages import EXIT_CODE, RUNS_FOR
from clusters.wait import wait_for
from ktrainer.api.resources import TRAINJOBS
from support.figures import Figures, scaled
from support.managers import Manager, running_manager
from support.trail import Trail, Write
from support.workplace import Workplace, torch_runtime

LIVES = scaled(60, 500)
CROWD = 60
"""How many live at a time."""
TTL_SECONDS = (0, 1, 2)
LONGEST_SECONDS = 6.0
CRASHES = 2
"""How often the manager is killed while a crowd lives."""
ENDS = {"Complete", "Failed"}

pytestmark = pytest.mark.usefixtures("crds")


@pytest.fixture
def manager(cluster: Folder, admin: Api, tmp_path: Path) -> Iterator[Manager]:
    """Without admission: TrainJobs are made while it is down, too."""
    with running_manager(cluster, admin, tmp_path, hooked=False) as manager:
        yield manager


def test_T33_an_end_should_be_an_end_when_the_jobset_is_gone(
    cluster: Folder, admin: Api, workplace: Workplace, manager: Manager, figures: Figures
) -> None:
    chance = random.Random(33)
    trail = Trail(cluster, workplace.namespace)
    for seconds in TTL_SECONDS:
        workplace.add_runtime(torch_runtime(f"ttl-{seconds}", ttlSecondsAfterFinished=seconds))
    names = [f"train-{number}" for number in range(LIVES)]
    for crowd in batches(names):
        live(workplace, manager, crowd, chance)
    states = Counter(job["status"]["state"] for job in admin.get(TRAINJOBS.path(workplace.namespace))["items"])
    jobsets, statuses = trail.writes("jobsets"), trail.writes("trainjobs", "ktrainer-manager")
    made = Counter(each.name for each in jobsets if each.is_creation)
    gone = {each.name for each in jobsets if each.verb == "delete" and each.is_success}
    figures.at_least("TrainJobs whose JobSets deleted themselves", len(gone), LIVES)
    figures.at_least("TrainJobs that have ended", states["Complete"] + states["Failed"], LIVES)
    figures.exactly("JobSets built again", sum(made.values()) - len(made), 0)
    figures.exactly("ends that were taken back", taken_back(statuses), 0)


def batches(names: list[str]) -> Iterator[list[str]]:
    for begin in range(0, len(names), CROWD):
        yield names[begin : begin + CROWD]


def live(workplace: Workplace, manager: Manager, names: list[str], chance: random.Random) -> None:
    """Let TrainJobs live to their ends, and kill the manager now and then meanwhile."""
    for name in names:
        pods = {RUNS_FOR: f"{chance.uniform(0, LONGEST_SECONDS):.1f}s"}
        if chance.random() < 0.5:
            pods[EXIT_CODE] = "1"
        runtime = f"ttl-{chance.choice(TTL_SECONDS)}"
        workplace.submit(name, runtime=runtime, pods=pods, trainer={"numNodes": 1})
    for _ in range(CRASHES):
        wait_for(lambda: False, chance.uniform(0, LONGEST_SECONDS / CRASHES))
        manager.crash()
        wait_for(lambda: False, chance.uniform(0, 1))
        manager.start()
        manager.wait_ready()
    assert wait_for(lambda: have_ended(workplace, names), 120, interval=0.5), "not all TrainJobs have ended"
    # Whoever would build one again has seen that it is gone.
    wait_for(lambda: False, 3)


def have_ended(workplace: Workplace, names: list[str]) -> bool:
    found = workplace.admin.get(workplace.path(TRAINJOBS))["items"]
    ended = {job["metadata"]["name"] for job in found if job.get("status", {}).get("state") in ENDS}
    return ended.issuperset(names)


def taken_back(writes: list[Write]) -> int:
    """How many statuses were written that know nothing of an end that was told before."""
    ended: dict[str, set[str]] = {}
    count = 0
    for write in writes:
        if not write.is_success:
            continue
        conditions = write.body.get("status", {}).get("conditions", [])
        ends = {each["type"] for each in conditions if each["type"] in ENDS and each["status"] == "True"}
        count += not ends >= ended.get(write.name, set())
        ended.setdefault(write.name, set()).update(ends)
    return count
