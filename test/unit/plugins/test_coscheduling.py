from typing import Any

from ktrainer.api.resources import COSCHEDULING_POD_GROUPS
from ktrainer.app.documents import run_now
from ktrainer.plugins.coscheduling import Coscheduling
from support.training import UID, container, dependencies, info_of, initializer, job, owned, runtime, trainjob

GANG: dict[str, Any] = {"podGroupPolicy": {"coscheduling": {}}, "mlPolicy": {"numNodes": 2}}
NODE = job("node", "trainer", container(resources={"requests": {"cpu": "500m", "memory": "1Gi"}}))
GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "demo", "namespace": "team-a"},
}


def test_the_pods_should_be_labelled() -> None:
    info = info_of(runtime(**GANG))
    Coscheduling(dependencies()).enforce_pod_group_policy(info, trainjob())
    assert info.pod_labels == {"scheduling.x-k8s.io/pod-group": "demo"}
    assert info.pod_annotations == {}


def test_the_group_should_count_members_and_resources() -> None:
    (component,) = run_now(Coscheduling(dependencies()).build(info_of(runtime(NODE, **GANG)), trainjob()))
    assert component.resource == COSCHEDULING_POD_GROUPS
    assert component.body["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert component.body["metadata"]["ownerReferences"][0]["uid"] == UID
    assert component.body["spec"] == {
        "minMember": 2,
        "minResources": {"cpu": "1", "memory": "2Gi"},
        "scheduleTimeoutSeconds": 60,
    }


def test_the_timeout_should_be_the_runtimes() -> None:
    value = runtime(podGroupPolicy={"coscheduling": {"scheduleTimeoutSeconds": 7}})
    (component,) = run_now(Coscheduling(dependencies()).build(info_of(value), trainjob()))
    assert component.body["spec"]["scheduleTimeoutSeconds"] == 7


def test_a_gang_should_be_as_in_the_original_where_nothing_waits() -> None:
    jobs = (initializer("dataset-initializer"), initializer("model-initializer"), job())
    value = runtime(*jobs, podGroupPolicy={"coscheduling": {}}, mlPolicy={"numNodes": 100})
    (component,) = run_now(Coscheduling(dependencies()).build(info_of(value), trainjob()))
    assert component.body["spec"]["minMember"] == 102


def test_an_initializer_that_is_waited_for_should_not_be_counted() -> None:
    node = job(dependsOn=[{"name": "dataset-initializer", "status": "Complete"}])
    value = runtime(initializer("dataset-initializer"), node, **{**GANG, "mlPolicy": {"numNodes": 9}})
    (component,) = run_now(Coscheduling(dependencies()).build(info_of(value), trainjob()))
    assert component.body["spec"]["minMember"] == 9


def test_a_group_that_is_there_should_change_only_while_suspended() -> None:
    plugin, info = Coscheduling(dependencies(owned(GROUP))), info_of(runtime(**GANG))
    assert run_now(plugin.build(info, trainjob())) == []
    assert len(run_now(plugin.build(info, trainjob(suspend=True)))) == 1


def test_other_runtimes_should_be_left_alone() -> None:
    for value in (runtime(), runtime(podGroupPolicy={"volcano": {}})):
        info, plugin = info_of(value), Coscheduling(dependencies())
        plugin.enforce_pod_group_policy(info, trainjob())
        assert info.pod_labels == {}
        assert run_now(plugin.build(info, trainjob())) == []


def test_pod_groups_should_be_watched_where_they_exist() -> None:
    watches = {watch.resource.plural: watch.optional for watch in Coscheduling(dependencies()).watches()}
    assert watches == {"podgroups": True, "limitranges": False, "runtimeclasses": False}
