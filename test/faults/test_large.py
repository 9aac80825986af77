"""Objects near the limits of what an API server stores, and beyond them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.api import Api, Object
from clusters.folder import Folder
from clusters.wait import wait_for
from support.figures import Figures
from support.managers import Manager, running_manager
from support.trail import Trail
from support.workplace import Workplace, message_of, torch_runtime

PART = 700_000
"""Bytes of an argument; an object has two of them."""
CALM_SECONDS = 5.0


@pytest.fixture
def manager(cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path) -> Iterator[Manager]:
    with running_manager(cluster, admin, tmp_path) as manager:
        yield manager


def large_runtime() -> Object:
    """A runtime with which the JobSet of a large TrainJob becomes larger than any store takes."""
    runtime = torch_runtime("large")
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    (container,) = job["template"]["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": "LARGE", "value": "x" * 300_000}]
    return runtime


def test_T30_large_objects_should_pass_and_larger_ones_be_told_of(
    cluster: Folder, workplace: Workplace, manager: Manager, figures: Figures
) -> None:
    trail, args = Trail(cluster, workplace.namespace), ["x" * PART, "y" * PART]
    workplace.add_runtime(large_runtime())
    workplace.submit("passes", suspend=True, trainer={"args": args})
    workplace.submit("object", runtime="large", suspend=True, trainer={"args": args})
    workplace.submit("annotated", suspend=True, annotations={"a": "x" * 300_000})
    workplace.until_reason("ResourcesReady", "True Applied", "passes")
    refused = {
        name: message_of(workplace.until_reason("ResourcesReady", "False ApplyRefused", name), "ResourcesReady")
        for name in ("object", "annotated")
    }
    # That the large one came back through the watch is seen by what follows from it.
    workplace.change("passes", labels={"seen": "again"})
    assert wait_for(lambda: "seen" in workplace.jobset("passes")["metadata"].get("labels", {}), 30)
    wait_for(lambda: False, CALM_SECONDS)
    tries = [each.name for each in trail.writes("jobsets", "ktrainer-manager") if each.name in refused]
    assert "1572864 are the limit" in refused["object"]
    assert "bytes of annotations" in refused["annotated"]
    figures.at_least("bytes of an object that passed", 2 * PART, 1_400_000, "B")
    figures.at_most("tries at what is too large", max(map(tries.count, refused)), 3)
    loud = [entry for entry in manager.log() if "toolong" in json.dumps(entry).lower().replace(" ", "")]
    figures.exactly("lines that were too long", len(loud), 0)
    figures.exactly("ends of the manager", int(not manager.is_running), 0)
