from typing import Any

import pytest

from ktrainer.app.documents import run_now
from ktrainer.plugins.volcano import Volcano
from support.training import (
    container,
    dependencies,
    errors_of,
    findings_of,
    info_of,
    initializer,
    job,
    owned,
    runtime,
    trainjob,
)

QUEUE = "scheduling.volcano.sh/queue-name"
HIGH = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
GROUP = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "demo", "namespace": "team-a"},
}


def gang(*jobs: dict[str, Any], **policy: Any) -> dict[str, Any]:
    return runtime(*jobs, podGroupPolicy={"volcano": policy}, mlPolicy={"numNodes": 2})


def of_class(name: str, priority: str | None) -> dict[str, Any]:
    pod = {"schedulerName": "volcano", **({"priorityClassName": priority} if priority else {})}
    return job(name, "trainer" if name == "node" else None, pod=pod)


def test_the_pods_should_be_annotated() -> None:
    info = info_of(gang())
    Volcano(dependencies()).enforce_pod_group_policy(info, trainjob())
    assert info.pod_annotations == {"scheduling.k8s.io/group-name": "demo"}
    assert info.pod_labels == {}


def test_the_group_should_count_members_and_resources() -> None:
    node = job("node", "trainer", container(resources={"requests": {"cpu": "2"}}))
    (component,) = run_now(Volcano(dependencies()).build(info_of(gang(node)), trainjob()))
    assert component.body["apiVersion"] == "scheduling.volcano.sh/v1beta1"
    assert component.body["spec"] == {"minMember": 2, "minResources": {"cpu": "4"}}


def test_queue_priority_and_topology_should_be_taken_over() -> None:
    value = gang(of_class("node", "high"), networkTopology={"mode": "soft", "highestTierAllowed": 2})
    wanted = trainjob(annotations={QUEUE: "gold"})
    (component,) = run_now(Volcano(dependencies()).build(info_of(value, wanted), wanted))
    spec = component.body["spec"]
    assert (spec["queue"], spec["priorityClassName"]) == ("gold", "high")
    assert spec["networkTopology"] == {"mode": "soft", "highestTierAllowed": 2}


def test_the_topology_should_have_its_defaults() -> None:
    (component,) = run_now(Volcano(dependencies()).build(info_of(gang(networkTopology={})), trainjob()))
    assert component.body["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 1}


def test_the_priority_of_a_job_outside_the_gang_should_not_count() -> None:
    early = initializer("dataset-initializer")
    early["template"]["spec"]["template"]["spec"]["priorityClassName"] = "low"
    node = {**of_class("node", "high"), "dependsOn": [{"name": "dataset-initializer", "status": "Complete"}]}
    (component,) = run_now(Volcano(dependencies()).build(info_of(gang(early, node)), trainjob()))
    assert component.body["spec"]["priorityClassName"] == "high"


def test_the_gang_of_mpi_should_be_judged_by_its_nodes() -> None:
    launcher = {**of_class("launcher", "low"), "dependsOn": [{"name": "node", "status": "Ready"}]}
    launcher["template"]["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    del launcher["template"]["spec"]["template"]["spec"]["schedulerName"]
    low = {**HIGH, "metadata": {"name": "low"}}
    value = runtime(launcher, of_class("node", "high"), podGroupPolicy={"volcano": {}}, mlPolicy={"mpi": {}})
    findings = findings_of(Volcano(dependencies(HIGH, low)), info_of(value), trainjob())
    assert (findings.errors, findings.warnings) == ([], []), "the launcher starts later, and is in no gang"


def test_a_group_that_is_there_should_change_only_while_suspended() -> None:
    plugin, info = Volcano(dependencies(owned(GROUP))), info_of(gang())
    assert run_now(plugin.build(info, trainjob())) == []
    assert len(run_now(plugin.build(info, trainjob(suspend=True)))) == 1


def test_a_group_of_somebody_else_should_not_pass_for_ours() -> None:
    assert len(run_now(Volcano(dependencies(GROUP)).build(info_of(gang()), trainjob()))) == 1


def test_other_runtimes_should_be_left_alone() -> None:
    for value in (runtime(), runtime(podGroupPolicy={"coscheduling": {}})):
        info, plugin = info_of(value), Volcano(dependencies())
        plugin.enforce_pod_group_policy(info, trainjob())
        assert info.pod_annotations == {}
        assert run_now(plugin.build(info, trainjob())) == []
        assert findings_of(plugin, info, trainjob()).warnings == []


def test_an_empty_queue_should_be_refused() -> None:
    wanted = trainjob(annotations={QUEUE: ""})
    findings = findings_of(Volcano(dependencies()), info_of(gang(of_class("node", None)), wanted), wanted)
    assert errors_of(findings) == [("INVALID", f"spec.annotations[{QUEUE}]")]


@pytest.mark.parametrize(
    ("priority", "objects", "errors"),
    [
        pytest.param("high", [HIGH], 0, id="exists"),
        pytest.param("high", [], 1, id="does not exist"),
        pytest.param("system-cluster-critical", [], 0, id="built in for the cluster"),
        pytest.param("system-node-critical", [], 0, id="built in for nodes"),
        pytest.param(None, [], 0, id="none"),
    ],
)
def test_a_priority_should_exist(priority: str | None, objects: list[Any], errors: int) -> None:
    findings = findings_of(Volcano(dependencies(*objects)), info_of(gang(of_class("node", priority))), trainjob())
    assert errors_of(findings) == [("INVALID", "spec.templateSpec.priorityClassName")] * errors


def test_every_job_should_be_checked_even_after_a_built_in_priority() -> None:
    early = job("early", None, pod={"priorityClassName": "system-node-critical", "schedulerName": "volcano"})
    node = {**of_class("node", "nope"), "dependsOn": [{"name": "early", "status": "Complete"}]}
    findings = findings_of(Volcano(dependencies()), info_of(gang(early, node)), trainjob())
    assert [error.value for error in findings.errors] == ["nope"]


def test_priorities_of_one_gang_should_be_the_same() -> None:
    value = gang(of_class("aux", "high"), of_class("node", "system-node-critical"))
    findings = findings_of(Volcano(dependencies(HIGH)), info_of(value), trainjob())
    assert errors_of(findings) == [("INVALID", "spec.templateSpec.priorityClassName")]


def test_pods_of_another_scheduler_should_be_warned_of() -> None:
    findings = findings_of(Volcano(dependencies()), info_of(gang(job())), trainjob())
    assert findings.errors == []
    (warning,) = findings.warnings
    assert warning == "the pods of the job node are in a Volcano gang, but their schedulerName is not volcano"
    findings = findings_of(Volcano(dependencies()), info_of(gang(of_class("node", None))), trainjob())
    assert findings.warnings == []


def test_pod_groups_should_be_watched_where_they_exist() -> None:
    watches = {watch.resource.plural: watch.optional for watch in Volcano(dependencies()).watches()}
    assert watches == {"podgroups": True, "limitranges": False, "runtimeclasses": False}
