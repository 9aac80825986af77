"""TrainJobs that cannot be built, or are not ours to build: nothing is made, and the status says why.

There is no admission here, as for TrainJobs that were created before it, or before an edit of their runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clusters.wait import wait_for
from ktrainer.api.resources import JOBSETS, TRAINJOBS
from support.workplace import Workplace, elastic_runtime, message_of, states_of, torch_runtime

if TYPE_CHECKING:
    from support.managers import Manager

pytestmark = pytest.mark.usefixtures("unhooked")


def test_a_trainjob_of_another_controller_should_be_left_alone(workplace: Workplace) -> None:
    workplace.submit("theirs", managedBy="kueue.x-k8s.io/multikueue", suspend=True)
    workplace.submit("ours", suspend=True)
    workplace.until_state("Suspended", "ours")
    workplace.change("theirs", suspend=False)
    workplace.change("ours", suspend=False)
    workplace.until_state("Running", "ours")
    assert "status" not in workplace.trainjob("theirs")
    assert [each["metadata"]["name"] for each in workplace.admin.get(workplace.path(JOBSETS))["items"]] == ["ours"]


def test_an_unknown_kind_of_runtime_should_fail_a_trainjob_once_and_for_all(
    workplace: Workplace, unhooked: Manager
) -> None:
    workplace.submit(runtimeRef={"name": "torch", "apiGroup": "acme.io", "kind": "Blueprint"})
    failed = workplace.until_state("Failed")
    assert states_of(failed)["Failed"] == "True TrainingRuntimeNotSupported"
    assert message_of(failed, "Failed") == "unsupported runtime: Blueprint.acme.io"
    outcomes = [entry["outcome"] for entry in unhooked.log() if is_turn_of(entry, workplace)]
    assert set(outcomes) <= {"success", "stale"}


def is_turn_of(entry: dict[str, str], workplace: Workplace) -> bool:
    return entry.get("namespace") == workplace.namespace and "outcome" in entry and entry.get("name") == "train"


def test_a_trainjob_should_wait_for_its_runtime(workplace: Workplace) -> None:
    workplace.submit(runtime="late")
    waiting = workplace.until_reason("ResourcesReady", "False RuntimeNotFound")
    assert states_of(waiting) == {"ResourcesReady": "False RuntimeNotFound", "Running": "False Pending"}
    assert "TrainingRuntime late" in message_of(waiting, "ResourcesReady")
    workplace.add_runtime(torch_runtime("late"))
    workplace.until_state("Running")


def test_a_trainjob_that_does_not_fit_should_be_told_in_status_and_event(workplace: Workplace) -> None:
    workplace.submit(trainer={"numNodes": 2, "env": [{"name": "PET_NNODES", "value": "7"}]})
    rejected = workplace.until_reason("ResourcesReady", "False ValidationRejected")
    message = message_of(rejected, "ResourcesReady")
    assert "spec.trainer.env" in message
    assert rejected["status"]["state"] == "Pending"
    assert wait_for(lambda: bool(workplace.events("TrainJobResourcesCreationFailed")), 20)
    event = workplace.events("TrainJobResourcesCreationFailed")[0]
    assert (event["type"], event["action"]) == ("Warning", "Reconciling")
    assert event["reportingController"] == "trainer-trainjob-controller"
    assert event["note"] == message
    assert event["regarding"]["uid"] == rejected["metadata"]["uid"]


def test_an_event_should_be_cut_where_the_status_has_the_whole(workplace: Workplace) -> None:
    patches = [
        {
            "manager": f"test.example/{number}",
            "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [{"name": f"{number}-{'x' * 50}"}]}}},
        }
        for number in range(16)
    ]
    workplace.submit(runtimePatches=patches)
    rejected = workplace.until_reason("ResourcesReady", "False ValidationRejected")
    message = message_of(rejected, "ResourcesReady")
    assert len(message) > 1024
    assert all(f"{number}-xxx" in message for number in range(16))
    assert wait_for(lambda: bool(workplace.events("TrainJobResourcesCreationFailed")), 20)
    note = workplace.events("TrainJobResourcesCreationFailed")[0]["note"]
    assert len(note) < 1024
    assert note[:500] == message[:500]


def test_what_the_jobset_controller_refuses_should_be_told_in_its_words(workplace: Workplace) -> None:
    workplace.add_runtime(torch_runtime("odd", network={"subdomain": "Not a name"}))
    workplace.submit(runtime="odd")
    refused = workplace.until_reason("ResourcesReady", "False ApplyRefused")
    assert "subdomain" in message_of(refused, "ResourcesReady")


def test_a_jobset_of_somebody_else_should_not_be_touched(workplace: Workplace) -> None:
    template = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "registry.example/none"}]}}}}
    foreign = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"suspend": True, "replicatedJobs": [{"name": "theirs", "template": template}]},
    }
    workplace.admin.create(workplace.path(JOBSETS), foreign)
    workplace.submit()
    workplace.until_reason("ResourcesReady", "False ApplyRefused")
    jobset = workplace.jobset()
    assert [each["name"] for each in jobset["spec"]["replicatedJobs"]] == ["theirs"]
    assert "ownerReferences" not in jobset["metadata"]


@pytest.mark.parametrize("nodes", [1, 5], ids=["too few", "too many"])
def test_a_number_of_nodes_out_of_bounds_should_change_nothing(workplace: Workplace, nodes: int) -> None:
    workplace.add_runtime(elastic_runtime(minNodes=2))
    workplace.submit(runtime="elastic")
    workplace.until_state("Running")
    before = workplace.jobset()["spec"]
    workplace.admin.merge(workplace.path(TRAINJOBS, "train", "scale"), {"spec": {"replicas": nodes}})
    generation = workplace.trainjob()["metadata"]["generation"]

    seen = workplace.until(lambda job: job["status"]["observedGeneration"] == generation, "the change is seen")
    assert seen["status"]["state"] == "Running"
    assert workplace.jobset()["spec"] == before
