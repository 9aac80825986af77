"""Elastic training: the number of nodes follows the scale subresource, in place, on a real control plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ktrainer.api.resources import HORIZONTAL_POD_AUTOSCALERS, TRAINJOBS
from support.workplace import Workplace, elastic_runtime, states_of

if TYPE_CHECKING:
    from clusters.api import Object

pytestmark = pytest.mark.usefixtures("manager")

METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def counts_of(jobset: Object) -> tuple[int, int]:
    spec = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    return spec["parallelism"], spec["completions"]


def uids_of(workplace: Workplace) -> set[str]:
    return {pod["metadata"]["uid"] for pod in workplace.pods()}


def scale(workplace: Workplace, nodes: int) -> None:
    workplace.admin.merge(workplace.path(TRAINJOBS, "train", "scale"), {"spec": {"replicas": nodes}})


def test_a_running_trainjob_should_grow_and_shrink_in_place(workplace: Workplace) -> None:
    workplace.add_runtime(elastic_runtime())
    workplace.submit(runtime="elastic")
    workplace.until_state("Running")
    jobset, first = workplace.jobset(), uids_of(workplace)
    assert (counts_of(jobset), len(first)) == ((2, 2), 2)
    scale(workplace, 4)
    workplace.until(lambda job: job["status"]["nodes"] == 4 and len(workplace.pods()) == 4, "it has four nodes")
    assert first < uids_of(workplace)
    scale(workplace, 1)
    workplace.until(lambda job: job["status"]["nodes"] == 1 and len(workplace.pods()) == 1, "it has one node")
    assert uids_of(workplace) < first
    shrunk = workplace.jobset()
    assert (counts_of(shrunk), shrunk["metadata"]["uid"]) == ((1, 1), jobset["metadata"]["uid"])
    assert admin_scale(workplace) == (1, 1)
    workplace.end_pods()
    done = workplace.until_state("Complete")
    assert states_of(done)["ResourcesReady"] == "True Applied"


def admin_scale(workplace: Workplace) -> tuple[int, int]:
    """What an autoscaler reads: the wanted and the present number of nodes."""
    found = workplace.admin.get(workplace.path(TRAINJOBS, "train", "scale"))
    return found["spec"]["replicas"], found["status"]["replicas"]


def test_an_autoscaler_should_be_made_that_finds_its_target(workplace: Workplace) -> None:
    workplace.add_runtime(elastic_runtime(metrics=[METRIC]))
    trainjob = workplace.submit(runtime="elastic")
    path = workplace.path(HORIZONTAL_POD_AUTOSCALERS, "train")
    made = workplace.waiter.until(path, lambda _: True, "there is an autoscaler")
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (trainjob["metadata"]["uid"], True)
    spec = made["spec"]
    assert spec["scaleTargetRef"] == {"apiVersion": trainjob["apiVersion"], "kind": "TrainJob", "name": "train"}
    assert (spec["minReplicas"], spec["maxReplicas"]) == (1, 4)

    def conditions(autoscaler: Object) -> dict[str, str]:
        return {each["type"]: each["status"] for each in autoscaler.get("status", {}).get("conditions", [])}

    # Kubernetes' own controller looks for the target; that nobody serves metrics here is another matter.
    workplace.waiter.until(path, lambda found: conditions(found).get("AbleToScale") == "True", "it finds its target")
