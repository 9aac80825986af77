"""Two replicas, of which the leader is killed again and again while TrainJobs live."""

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from clusters.api import Api, Refused
from clusters.folder import Folder
from clusters.wait import wait_for
from ktrainer.api.resources import TRAINING_RUNTIMES, TRAINJOBS
from support.figures import Figures, scaled
from support.goldenlives import made_twice, trainjob_of
from support.managers import NAMESPACE, Manager, ManagerSettings, Ports
from support.pluginlives import PLUGINS
from support.roles import installed_roles
from support.trail import Trail

LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/trainer.kubeflow.org"
TRAINJOB_COUNT = scaled(40, 200)
KILLS = scaled(2, 10)
INTERVAL_SECONDS = scaled(3, 45)
"""From when somebody leads to when he is killed."""
NEW_LEADER_SECONDS = 25.0
LONGEST_SECONDS = scaled(30, 400)
"""How long the longest TrainJob trains."""

pytestmark = pytest.mark.usefixtures("crds")


@pytest.fixture
def managers(cluster: Folder, admin: Api, tmp_path: Path) -> Iterator[list[Manager]]:
    """Two replicas without admission, which is for other scenarios."""
    with suppress(Refused):
        # Whoever led before may have been killed.
        admin.delete(LEASE)
    settings = ManagerSettings(
        cluster.kubeconfig("trainer"),
        configuration={"leaderElection": {"leaderElect": True}},
        gates="TrainJobStatus=true",
        flags=("--no-webhook",),
        folder=tmp_path,
    )
    managers = [Manager(replace(settings, ports=Ports.free()), tmp_path, f"manager-{number}") for number in range(2)]
    with installed_roles(cluster, admin):
        try:
            for manager in managers:
                manager.start()
            yield managers
        finally:
            for manager in managers:
                manager.crash()


def test_T44_a_leader_that_is_killed_again_and_again_should_lose_nothing_and_build_nothing_twice(
    cluster: Folder, admin: Api, namespace: str, managers: list[Manager], figures: Figures
) -> None:
    trail, chance = Trail(cluster, namespace), random.Random(44)
    for case in PLUGINS:
        admin.create(TRAINING_RUNTIMES.path(namespace), case.runtime(""))
    cases = itertools.islice(itertools.cycle(PLUGINS), TRAINJOB_COUNT)
    trainjobs = [
        trainjob_of(case, f"{case.name}-{number}", chance.uniform(0, LONGEST_SECONDS))
        for number, case in enumerate(cases)
    ]
    leader_of(managers, 60)
    waits = []
    for part in parts_of(trainjobs, KILLS):
        for each in part:
            admin.create(TRAINJOBS.path(namespace), each)
        wait_for(lambda: False, INTERVAL_SECONDS)
        waits.append(succeed(managers))
    assert wait_for(lambda: not unfinished(admin, namespace), LONGEST_SECONDS + 60, interval=0.5), (
        f"not Complete: {unfinished(admin, namespace)}"
    )
    figures.at_least("leaders that were killed", len(waits), KILLS)
    figures.at_most("until another leads", max(waits), NEW_LEADER_SECONDS, "s")
    figures.exactly("TrainJobs that were lost", TRAINJOB_COUNT - len(admin.get(TRAINJOBS.path(namespace))["items"]), 0)
    figures.exactly("objects and keys built twice", len(made_twice(trail)), 0)


def parts_of(values: Sequence[dict[str, object]], count: int) -> Iterator[Sequence[dict[str, object]]]:
    """Cut a sequence into so many parts."""
    size = -(-len(values) // count)
    return (values[begin : begin + size] for begin in range(0, len(values), size))


def leader_of(managers: list[Manager], seconds: float) -> Manager:
    """Wait until somebody leads."""
    assert wait_for(lambda: any(each.is_leading for each in managers), seconds), "nobody leads"
    return next(each for each in managers if each.is_leading)


def succeed(managers: list[Manager]) -> float:
    """Kill the leader, start it again, and return how long nobody led."""
    leader = leader_of(managers, NEW_LEADER_SECONDS)
    leader.crash()
    began = time.monotonic()
    leader.start()
    leader_of(managers, NEW_LEADER_SECONDS + 5)
    return time.monotonic() - began


def unfinished(admin: Api, namespace: str) -> list[str]:
    found = admin.get(TRAINJOBS.path(namespace))["items"]
    return [job["metadata"]["name"] for job in found if job.get("status", {}).get("state") != "Complete"]
