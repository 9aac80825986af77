"""What wakes a TrainJob beside itself: its own objects, and what decides on pods to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.wait import wait_for
from ktrainer.api.resources import JOBSETS, LIMIT_RANGES
from support.workplace import Workplace, unattended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.api import Api, Object
    from support.managers import Manager

CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


def turns_of(manager: Manager, workplace: Workplace, name: str) -> int:
    """How many turns a TrainJob has had."""
    own = {"namespace": workplace.namespace, "name": name, "controller": "trainjob_controller"}
    return sum(entry.items() >= own.items() and "outcome" in entry for entry in manager.log())


def test_what_somebody_changes_should_be_repaired(workplace: Workplace, manager: Manager) -> None:
    workplace.submit(suspend=True)
    workplace.until_state("Suspended")
    path = workplace.path(JOBSETS, "train")
    workplace.admin.merge(path, {"spec": {"suspend": False}, "metadata": {"labels": {"mine": "too"}}})
    repaired = workplace.waiter.until(path, lambda jobset: jobset["spec"]["suspend"], "it is suspended again")
    assert repaired["metadata"]["labels"]["mine"] == "too"


@pytest.fixture
def runtime_class(admin: Api, namespace: str) -> Iterator[str]:
    """The name of a RuntimeClass that does not exist yet; it is removed, if it was made."""
    yield namespace
    if any(each["metadata"]["name"] == namespace for each in admin.get(CLASSES)["items"]):
        admin.delete(f"{CLASSES}/{namespace}")


def test_limits_and_runtime_classes_should_wake_only_suspended_trainjobs(
    workplace: Workplace, manager: Manager, runtime_class: str
) -> None:
    for name, chosen in (("classy", runtime_class), ("plain", "")):
        runtime = unattended(name)
        pod = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
        pod |= {"runtimeClassName": chosen} if chosen else {}
        workplace.add_runtime(runtime)
        workplace.submit(f"{name}-held", runtime=name, suspend=True)
        workplace.submit(f"{name}-run", runtime=name)
    jobs = ["classy-held", "classy-run", "plain-held", "plain-run"]
    for name in jobs:
        workplace.until_reason("ResourcesReady", "True Applied", name)

    def woken_by(path: str, body: Object, expected: set[str]) -> set[str]:
        before = settled()
        workplace.admin.create(path, body)
        assert wait_for(lambda: all(turns_of(manager, workplace, each) > before[each] for each in expected), 20)
        return {each for each, turns in settled().items() if turns > before[each]}

    def settled() -> dict[str, int]:
        """The turns that each has had, once nothing is left to be done."""
        workplace.submit(f"marker-{len(markers)}", suspend=True)
        markers.append(workplace.until_state("Suspended", f"marker-{len(markers)}"))
        return {each: turns_of(manager, workplace, each) for each in jobs}

    markers: list[Object] = []
    limits: Object = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]}
    limit_range = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small"}, "spec": limits}
    held = {"classy-held", "plain-held"}
    assert woken_by(workplace.path(LIMIT_RANGES), limit_range, held) == held
    class_ = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": runtime_class},
        "handler": "x",
    }
    assert woken_by(CLASSES, class_, {"classy-held"}) == {"classy-held"}
