"""Whole lives of TrainJobs, for every plugin, all at once, while the manager is killed again and again.

Through the real JobSet and Job controllers, on fake nodes: create, suspend, resume, patch while suspended, run, end in
either way, exceed the deadline, outlive the time to live, delete; runtimes are edited and deleted meanwhile.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from clusters.api import Api
from clusters.wait import wait_for
from ktrainer.api.resources import (
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    HORIZONTAL_POD_AUTOSCALERS,
    JOBSETS,
    PODS,
    SECRETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    VOLCANO_POD_GROUPS,
)
from ktrainer.kube.identity import Resource
from support.kubectl import Kubectl
from support.lives import Life, Progress
from support.managers import Manager, running_manager
from support.pluginlives import PLUGINS
from support.statecolumn import StateColumn, watched_states
from support.waiting import Waiter
from support.workplace import Workplace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from clusters.api import Object
    from clusters.folder import Folder
    from support.pluginlives import PluginCase

pytestmark = pytest.mark.timeout(300)

JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)
ALL = (
    JOBSETS,
    JOBS,
    PODS,
    CONFIG_MAPS,
    SECRETS,
    COSCHEDULING_POD_GROUPS,
    VOLCANO_POD_GROUPS,
    HORIZONTAL_POD_AUTOSCALERS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
)
"""What TrainJobs make, and what is made of that."""
KILLS = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
"""When the manager is killed, by the share of all steps that have been done."""


def succeeds(life: Life) -> None:
    """Held, patched, run, held again and patched while its pods stop, run again, done, and gone when its time is up."""
    life.begin(suspend=True)
    life.wait("Suspended")
    made = life.children()
    life.change(runtimePatches=life.patches("second"))
    life.change(suspend=False)
    life.wait("Running")
    life.check_run("second")
    life.edit_runtime()
    life.delete_runtime()
    life.change(suspend=True)
    life.change(runtimePatches=life.patches("third"))
    life.wait("Suspended")
    life.change(suspend=False)
    life.check_run("third")
    life.wait("Running")
    assert life.children() == made, "something was made a second time"
    life.end_pods("third")
    life.check_end("Complete")
    life.change(ttlSecondsAfterFinished=0)
    life.wait_gone()


def fails(life: Life) -> None:
    """Run, failed, and deleted by hand."""
    life.begin()
    life.wait("Running")
    life.check_run("first")
    life.end_pods("first", code=3)
    failed = life.check_end("Failed")
    assert failed["status"]["firstFailure"]["exitCode"] == 3
    life.delete()
    life.wait_gone()


def overruns(life: Life) -> None:
    """Run for too long, and deleted by hand."""
    life.begin(activeDeadlineSeconds=45)
    life.wait("Running")
    life.check_run("first")
    life.check_end("Failed", "DeadlineExceeded")
    life.wait_jobset_gone()
    life.delete()
    life.wait_gone()


HISTORIES: dict[Callable[[Life], None], list[str]] = {
    succeeds: ["Suspended", "Running", "Suspended", "Running", "Complete"],
    fails: ["Running", "Failed"],
    overruns: ["Running", "Failed"],
}
"""What kubectl shows of each, one after the other."""
STEPS = len(PLUGINS) * (18 + 8 + 8)
"""How many steps all lives have, at least."""


@pytest.fixture
def manager(cluster: Folder, crds: list[Object], admin: Api, tmp_path: Path) -> Iterator[Manager]:
    """A manager with all plugins."""
    with running_manager(cluster, admin, tmp_path, gates="TrainJobStatus=true") as manager:
        yield manager


@pytest.fixture
def column(cluster: Folder, namespace: str) -> Iterator[StateColumn]:
    with watched_states(Kubectl(cluster.kubeconfig("admin")), namespace) as column:
        yield column


def test_every_plugin_should_see_all_lives_through_while_the_manager_is_killed_again_and_again(
    cluster: Folder, admin: Api, namespace: str, waiter: Waiter, manager: Manager, column: StateColumn
) -> None:
    progress, lives = Progress(), [(case, tell) for case in PLUGINS for tell in HISTORIES]

    def live(case: PluginCase, tell: Callable[[Life], None]) -> None:
        with closing(Api(cluster.kubeconfig("admin"))) as api:
            workplace = Workplace(api, Waiter(api, namespace, waiter.folder))
            life = Life(case, tell.__name__, workplace, column, progress)
            tell(life)
            assert column.history(life.name) == HISTORIES[tell]

    with ThreadPoolExecutor(len(lives)) as pool:
        told = {f"{case.name} {tell.__name__}": pool.submit(live, case, tell) for case, tell in lives}
        for share in KILLS:
            progress.wait(round(share * STEPS))
            manager.crash()
            manager.start()
            manager.wait_ready()
    failures = {name: future.exception() for name, future in told.items() if future.exception()}
    assert not failures, f"{failures}\n{manager.tail()}"
    left = [wait_gone(admin, resource.path(namespace)) for resource in ALL]
    assert left == [[]] * len(ALL)


def wait_gone(admin: Api, path: str) -> list[str]:
    """Wait until nothing of a kind is left but what belongs to the namespace itself; return what is."""

    def left() -> list[str]:
        names = [each["metadata"]["name"] for each in admin.get(path)["items"]]
        return [name for name in names if name != "kube-root-ca.crt"]

    wait_for(lambda: not left(), 60, interval=0.5)
    return left()
