"""A fault that lasts, for many TrainJobs at once. Ten minutes of it are shown in virtual time, too."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.api import Api
from clusters.folder import Folder
from clusters.wait import wait_for
from ktrainer.api.resources import JOBSETS
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Respond, status
from support.figures import Figures, scaled
from support.managers import Manager, ManagerSettings
from support.roles import installed_roles
from support.trail import Trail
from support.workplace import Workplace, states_of

FAULTY = scaled(60, 500)
FAULT_SECONDS = scaled(20, 600)
MOST_TRIES = scaled(14, 18)
"""In that time: the delay begins at 5 ms, doubles each time, and ends at 300 s."""
MOST_EVENTS = 25 + 2

pytestmark = pytest.mark.usefixtures("crds")


@pytest.fixture
def own_proxy(cluster: Folder, tmp_path: Path) -> Iterator[FaultProxy]:
    with FaultProxy(cluster.kubeconfig("trainer"), tmp_path) as proxy:
        yield proxy


@pytest.fixture
def manager(cluster: Folder, admin: Api, own_proxy: FaultProxy, tmp_path: Path) -> Iterator[Manager]:
    settings = ManagerSettings(own_proxy.kubeconfig, folder=tmp_path, flags=("--no-webhook",))
    manager = Manager(settings, tmp_path)
    with installed_roles(cluster, admin):
        manager.start()
        try:
            manager.wait_ready()
            yield manager
        finally:
            manager.crash()


def test_T41_a_fault_that_lasts_should_be_met_with_patience(
    cluster: Folder, own_proxy: FaultProxy, workplace: Workplace, manager: Manager, figures: Figures
) -> None:
    trail, path = Trail(cluster, workplace.namespace), JOBSETS.path(workplace.namespace)
    failure = status(500, "InternalError")
    own_proxy.rules = [Respond(lambda request: request.is_write and path in request.path, status=500, body=failure)]
    for number in range(FAULTY):
        workplace.submit(f"train-{number}", suspend=True)
    wait_for(lambda: not manager.is_running, FAULT_SECONDS)
    tries = Counter(
        each.request.path for each in list(own_proxy.seen) if path in each.request.path and each.status == 500
    )
    told = Counter(each.name.rpartition(".")[0] for each in trail.writes("events"))
    failed = [states_of(workplace.trainjob(f"train-{number}")).get("ResourcesReady") for number in range(FAULTY)]
    assert set(failed) == {"False ApplyFailed"}
    figures.exactly("TrainJobs that could not be built", len(tries), FAULTY)
    figures.at_most("tries for each", max(tries.values()), MOST_TRIES)
    figures.at_most("requests for the events of each", max(told.values()), MOST_EVENTS)
    figures.exactly("ends of the manager", int(not manager.is_running), 0)
