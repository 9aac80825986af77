"""Everything is deleted while the manager is down."""

from pathlib import Path

import pytest

from clusters.api import Api
from clusters.folder import Folder
from clusters.wait import wait_for
from ktrainer.api.resources import TRAINING_RUNTIMES, TRAINJOBS
from support.figures import Figures, scaled
from support.goldenlives import trainjob_of
from support.leftovers import children_in
from support.managers import running_manager
from support.pluginlives import PLUGINS
from support.trail import Trail, Write

LIVES = scaled(2, 20)
"""How many TrainJobs each plugin has."""
CALM_SECONDS = 5.0
LONG_SECONDS = 600.0

pytestmark = pytest.mark.usefixtures("crds")


def test_T32_what_was_deleted_meanwhile_should_stay_deleted(
    cluster: Folder, admin: Api, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    trainjobs, runtimes = TRAINJOBS.path(namespace), TRAINING_RUNTIMES.path(namespace)
    names = [f"{case.name}-{number}" for case in PLUGINS for number in range(LIVES)]
    with running_manager(cluster, admin, tmp_path) as manager:
        for case in PLUGINS:
            admin.create(runtimes, case.runtime(""))
            for number in range(LIVES):
                # Some have ended, the others run.
                seconds = LONG_SECONDS if number else 1.0
                admin.create(trainjobs, trainjob_of(case, f"{case.name}-{number}", seconds))
        assert wait_for(lambda: len(children_in(admin, namespace)) == len(names), 120), "not all have children"
        assert wait_for(lambda: has_ended(admin, f"{trainjobs}/{names[0]}"), 60), "none has ended"
        manager.crash()
        for name in names:
            admin.delete(f"{trainjobs}/{name}")
        for case in PLUGINS:
            admin.delete(f"{runtimes}/{case.name}{case.suffix}")
        assert wait_for(lambda: not children_in(admin, namespace), 60), "children outlive their TrainJobs"
        trail = Trail(cluster)
        manager.start()
        manager.wait_ready()
        # Runtimes that were in use wait for somebody to let them go.
        assert wait_for(lambda: not admin.get(runtimes)["items"], 30), "runtimes are held on to"
        wait_for(lambda: False, CALM_SECONDS)
        writes = [each for each in trail.writes("", "ktrainer-manager") if not is_expected(each)]
        # That it is not ready yet is only said because we ask; and other scenarios leave things, too.
        ours = {None, namespace}
        said = [entry for entry in manager.log() if "endpoint" not in entry and entry.get("namespace") in ours]
        loud = [entry for entry in said if entry.get("level") in {"error", "warning"}]
    assert writes == []
    assert loud == []
    figures.at_least("TrainJobs that were deleted", len(names), 20)
    figures.exactly("writes after the start", len(writes), 0)
    figures.exactly("objects that came back", len(children_in(admin, namespace)), 0)
    figures.exactly("errors and warnings in the log", len(loud), 0)


def has_ended(admin: Api, path: str) -> bool:
    return bool(admin.get(path).get("status", {}).get("state") == "Complete")


def is_expected(write: Write) -> bool:
    """Whether a write is about leases and events, or lets go of a runtime."""
    return write.resource in {"leases", "events"} or (write.resource == "trainingruntimes" and write.verb == "patch")
