"""TrainJobs that change while they are suspended, on a real control plane.

A suspended JobSet takes other labels, annotations, node selectors, tolerations and scheduling gates for its pods, and
refuses all else.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from clusters.wait import wait_for
from ktrainer.kube.timestamp import parse_time
from ktrainer.plugins.jobset.held import PROMPT_SECONDS
from support.workplace import Workplace, elastic_runtime, message_of, states_of, torch_runtime, unattended

if TYPE_CHECKING:
    from clusters.api import Object

pytestmark = pytest.mark.usefixtures("manager")

TERM = {"matchExpressions": [{"key": "test/none", "operator": "DoesNotExist"}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [TERM]}}}
READY = "True Applied"


def overridden(**pods: Any) -> list[Object]:
    return [{"targetJobs": [{"name": "node"}], "spec": pods}]


def is_seen(trainjob: Object) -> bool:
    """Whether the status speaks of the present spec."""
    return bool(trainjob["status"].get("observedGeneration") == trainjob["metadata"]["generation"])


def hold(workplace: Workplace) -> None:
    """Suspend a TrainJob that has run for some seconds, and wait until its pods are gone."""
    began = parse_time(workplace.jobset()["metadata"]["creationTimestamp"])
    assert wait_for(lambda: datetime.now(UTC) > began + timedelta(seconds=PROMPT_SECONDS + 3), 10)
    workplace.change(suspend=True)
    workplace.until(
        lambda job: job["status"]["state"] == "Suspended" and job["status"]["jobsStatus"][0]["active"] == 0,
        "its pods have stopped",
    )


def counts_of(jobset: Object) -> tuple[int, int]:
    spec = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    return spec["parallelism"], spec["completions"]


@pytest.mark.parametrize("at_once", [False, True], ids=["then resumed", "and resumed at once"])
def test_what_never_ran_should_start_with_any_change(workplace: Workplace, at_once: bool) -> None:
    # One that deletes itself after its end must not be taken for one that has ended, either.
    workplace.add_runtime(torch_runtime("passing", ttlSecondsAfterFinished=600))
    workplace.submit(suspend=True, runtime="passing")
    workplace.until_reason("ResourcesReady", READY)
    before = workplace.jobset()["metadata"]["uid"]
    change = overridden(affinity=AFFINITY, volumes=[{"name": "more", "emptyDir": {}}], serviceAccountName="default")
    if not at_once:
        workplace.change(podTemplateOverrides=change)
        held = workplace.until(is_seen, "the change is seen")
        assert (states_of(held)["ResourcesReady"], held["status"]["state"]) == (READY, "Suspended")
    workplace.change(podTemplateOverrides=change, suspend=False)
    workplace.until_state("Running")
    pods = [pod["spec"] for pod in workplace.pods()]
    assert [pod["affinity"] for pod in pods] == [AFFINITY] * 2
    assert all("more" in {volume["name"] for volume in pod["volumes"]} for pod in pods)
    assert workplace.jobset()["metadata"]["uid"] != before
    workplace.end_pods()
    done = workplace.until_state("Complete")
    assert states_of(done)["ResourcesReady"] == READY


def test_what_ran_should_be_resumed_without_what_it_does_not_take_and_say_so(workplace: Workplace) -> None:
    workplace.submit()
    workplace.until_state("Running")
    before = workplace.jobset()["metadata"]["uid"]
    hold(workplace)
    tolerations = [{"key": "test/none", "operator": "Exists"}]
    workplace.change(podTemplateOverrides=overridden(affinity=AFFINITY, tolerations=tolerations))
    refused = workplace.until_reason("ResourcesReady", "False ApplyRefused")
    message = message_of(refused, "ResourcesReady")
    assert message.startswith("the JobSet has run before, and keeps what it has of spec.replicatedJobs[node]")
    assert "template.spec.affinity: 422 Invalid" in message
    assert "field is immutable" in message
    workplace.change(suspend=False)
    running = workplace.until_state("Running")
    assert states_of(running)["ResourcesReady"] == "False ApplyRefused"
    assert message_of(running, "ResourcesReady") == message
    pods = [pod["spec"] for pod in workplace.pods()]
    assert [("affinity" in pod, tolerations[0] in pod["tolerations"]) for pod in pods] == [(False, True)] * 2
    assert workplace.jobset()["metadata"]["uid"] == before
    hold(workplace)
    workplace.change(podTemplateOverrides=None)
    back = workplace.until_reason("ResourcesReady", READY)
    assert back["status"]["state"] == "Suspended"
    spec = workplace.jobset()["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert "tolerations" not in spec


def test_what_refuses_another_number_of_nodes_should_be_suspended_and_resumed(workplace: Workplace) -> None:
    # As without JobSet's feature gate: of jobs that are not indexed no JobSet changes the counts.
    runtime = elastic_runtime()
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["completionMode"] = "NonIndexed"
    workplace.add_runtime(runtime)
    workplace.submit(runtime="elastic")
    workplace.until_state("Running")
    workplace.change(trainer={"numNodes": 3})
    refused = workplace.until_reason("ResourcesReady", "False ApplyRefused")
    assert "ElasticJobSet" in message_of(refused, "ResourcesReady")
    hold(workplace)
    assert workplace.jobset()["spec"]["suspend"] is True
    assert workplace.pods() == []
    held = workplace.until(is_seen, "the suspension is seen")
    assert states_of(held)["ResourcesReady"] == "False ApplyRefused"
    assert "ElasticJobSet" in message_of(held, "ResourcesReady")
    workplace.change(suspend=False)
    workplace.until_state("Running")
    assert counts_of(workplace.jobset()) == (2, 2)


def test_what_never_ran_should_start_with_another_number_of_nodes(workplace: Workplace) -> None:
    runtime = elastic_runtime()
    job = runtime["spec"]["template"]["spec"]["replicatedJobs"][0]
    job["template"]["spec"]["completionMode"] = "NonIndexed"
    workplace.add_runtime(runtime)
    workplace.submit(runtime="elastic", suspend=True)
    workplace.until_reason("ResourcesReady", READY)
    workplace.change(trainer={"numNodes": 3}, suspend=False)
    workplace.until_state("Running")
    assert (counts_of(workplace.jobset()), len(workplace.pods())) == ((3, 3), 3)


def test_a_change_should_be_told_to_wait_while_pods_stop(workplace: Workplace) -> None:
    workplace.add_runtime(unattended())
    workplace.submit(runtime="unattended")
    workplace.until_jobset()
    workplace.report(active=1, ready=1)
    workplace.until_state("Running")
    workplace.change(suspend=True)
    held = workplace.until(lambda job: is_seen(job) and workplace.jobset()["spec"]["suspend"], "it is suspended")
    assert states_of(held)["ResourcesReady"] == READY, "a suspension alone waits for nothing"
    workplace.change(podTemplateOverrides=overridden(nodeSelector={"test/zone": "west"}))
    waiting = workplace.until_reason("ResourcesReady", "False ApplyFailed")
    assert message_of(waiting, "ResourcesReady") == (
        "these changes wait until the last pod of the JobSet has stopped: "
        "spec.replicatedJobs[node].template.spec.template.spec.nodeSelector"
    )
    assert workplace.events("TrainJobResourcesCreationFailed") == []
    workplace.report(suspended=1)
    workplace.until_reason("ResourcesReady", READY)
    pods = workplace.jobset()["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert pods["nodeSelector"] == {"test/zone": "west"}
