"""Gangs: a PodGroup for the pods that start together, which is given back at the end, on a real control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.api import Refused
from ktrainer.api.resources import COSCHEDULING_POD_GROUPS, PRIORITY_CLASSES, VOLCANO_POD_GROUPS
from support.training import container, initializer, job, runtime

if TYPE_CHECKING:
    from clusters.api import Object
    from ktrainer.kube.identity import Resource
    from support.workplace import Workplace

pytestmark = pytest.mark.usefixtures("manager")


def gang_runtime(policy: str) -> Object:
    """A runtime whose nodes wait for an initializer, which therefore cannot be of their gang."""
    first = initializer("dataset-initializer")
    first["template"]["spec"]["template"]["spec"]["volumes"] = [{"name": "initializer", "emptyDir": {}}]
    waits = [{"name": "dataset-initializer", "status": "Complete"}]
    nodes = job("node", "trainer", container(resources={"requests": {"cpu": "500m"}}), dependsOn=waits)
    made = runtime(first, nodes, kind="TrainingRuntime", podGroupPolicy={policy: {}})
    return {**made, "metadata": {"name": policy}}


@pytest.mark.parametrize(
    "policy, resource, place, mark",
    [
        ("coscheduling", COSCHEDULING_POD_GROUPS, "labels", "scheduling.x-k8s.io/pod-group"),
        ("volcano", VOLCANO_POD_GROUPS, "annotations", "scheduling.k8s.io/group-name"),
    ],
    ids=["coscheduling", "volcano"],
)
def test_a_gang_should_be_of_those_that_start_together_and_be_released_at_the_end(
    workplace: Workplace, policy: str, resource: Resource, place: str, mark: str
) -> None:
    workplace.add_runtime(gang_runtime(policy))
    trainjob = workplace.submit(runtime=policy)
    workplace.until_state("Running")
    group = workplace.admin.get(workplace.path(resource, "train"))
    assert group["metadata"]["ownerReferences"][0]["uid"] == trainjob["metadata"]["uid"]
    assert (group["spec"]["minMember"], group["spec"]["minResources"]) == (2, {"cpu": "1"})
    assert [pod["metadata"][place].get(mark) for pod in workplace.pods()] == ["train", "train"]
    (first,) = workplace.pods(job="dataset-initializer")
    assert mark not in first["metadata"].get(place, {})
    workplace.end_pods()
    workplace.until_state("Complete")
    workplace.until_gone(resource)


def test_a_gang_should_have_the_priority_of_its_pods_which_must_exist(workplace: Workplace) -> None:
    name = workplace.namespace
    made = gang_runtime("volcano")
    for each in made["spec"]["template"]["spec"]["replicatedJobs"]:
        each["template"]["spec"]["template"]["spec"]["priorityClassName"] = name
    workplace.add_runtime(made)
    with pytest.raises(Refused, match="there is no such PriorityClass"):
        workplace.submit(runtime="volcano", suspend=True)
    priority = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind, "value": 1000}
    workplace.admin.create(PRIORITY_CLASSES.path(""), {**priority, "metadata": {"name": name}})
    try:
        workplace.submit(runtime="volcano", suspend=True)
        workplace.until_state("Suspended")
        assert workplace.admin.get(workplace.path(VOLCANO_POD_GROUPS, "train"))["spec"]["priorityClassName"] == name
    finally:
        workplace.admin.delete(PRIORITY_CLASSES.path("", name))
