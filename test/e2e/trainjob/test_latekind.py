"""An optional kind that the cluster gets later is picked up, on a real control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.install import apply_all, established, path_of
from clusters.wait import wait_for
from ktrainer.api.resources import VOLCANO_POD_GROUPS
from support.managers import Manager, running_manager
from support.workplace import Workplace, torch_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clusters.api import Api, Object
    from clusters.folder import Folder

TRIES = 14
"""After so many in vain, it is more than half a minute until the next."""
WAKING_SECONDS = 20.0
"""How long after a kind was installed those who wait for it have their turn, at most."""

POD_GROUPS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/podgroups.scheduling.volcano.sh"


@pytest.fixture
def no_volcano(admin: Api) -> Iterator[Object]:
    """The CRD of Volcano's PodGroups, which the cluster lacks; it gets it back at the end."""
    crd = admin.get(POD_GROUPS)
    bare = {**crd, "metadata": {"name": crd["metadata"]["name"]}}
    del bare["status"]
    admin.delete(POD_GROUPS)
    assert wait_for(lambda: bare["metadata"]["name"] not in crds_in(admin), 60)
    yield bare
    install(admin, bare)


def crds_in(admin: Api) -> list[str]:
    return [each["metadata"]["name"] for each in admin.get(POD_GROUPS.rpartition("/")[0])["items"]]


def install(admin: Api, crd: Object) -> None:
    assert path_of(crd) == POD_GROUPS
    apply_all(admin, [crd])
    assert wait_for(lambda: established(admin, [crd]), 30)


def is_followed(manager: Manager) -> bool:
    """Whether the manager hears of PodGroups now."""
    return any("scheduling.volcano.sh" in entry["informer"] for entry in manager.logged("list and watch work again"))


def tries_of(manager: Manager, name: str) -> int:
    """How often the manager has tried in vain to build what a TrainJob needs."""
    return sum(entry["name"] == name for entry in manager.logged("reconcile failed"))


def test_a_kind_that_is_installed_later_should_be_picked_up(
    cluster: Folder, crds: list[Object], admin: Api, workplace: Workplace, no_volcano: Object, tmp_path: Path
) -> None:
    gang = torch_runtime("gang")
    gang["spec"]["podGroupPolicy"] = {"volcano": {}}
    workplace.add_runtime(gang)
    with running_manager(cluster, admin, tmp_path) as manager:
        workplace.submit("plain")
        workplace.until_state("Running", "plain")
        workplace.submit(runtime="gang")
        waiting = workplace.until(lambda job: "conditions" in job.get("status", {}), "it has conditions")
        assert waiting["status"]["state"] == "Pending"
        assert wait_for(lambda: tries_of(manager, "train") >= TRIES, 90), manager.tail()
        install(admin, no_volcano)
        group = workplace.path(VOLCANO_POD_GROUPS, "train")
        uid = workplace.waiter.until(group, lambda _: True, "it is there", WAKING_SECONDS)["metadata"]["uid"]
        workplace.until_state("Running")
        assert wait_for(lambda: is_followed(manager), 90), manager.tail()
        admin.delete(group)
        workplace.waiter.until(group, lambda each: each["metadata"]["uid"] != uid, "it is back")
    waits = [entry["informer"] for entry in manager.logged("the server does not know the kind; waiting for it")]
    assert waits == ["podgroups.scheduling.volcano.sh"]
