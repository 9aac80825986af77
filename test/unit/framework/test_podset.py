import itertools
import tracemalloc

from ktrainer.framework.container import EnvLog
from ktrainer.framework.podset import PodSet
from support.training import container, info_of, job, runtime, trainjob


def test_endpoints_should_name_every_pod_of_every_replica() -> None:
    pods = PodSet(job("node", None, replicas=2), "demo", "sub", EnvLog())
    pods.count = 2
    assert list(pods.endpoints) == ["demo-node-0-0.sub", "demo-node-0-1.sub", "demo-node-1-0.sub", "demo-node-1-1.sub"]
    assert pods.first_endpoint == "demo-node-0-0.sub"


def test_a_job_of_a_known_ancestor_should_have_one_replica() -> None:
    assert PodSet(job("node", "trainer", replicas=3), "demo", "demo", EnvLog()).replicas == 1
    assert PodSet(job("node", "other", replicas=3), "demo", "demo", EnvLog()).replicas == 3


def test_endpoints_should_not_be_made_before_they_are_asked_for() -> None:
    pods = PodSet(job(), "demo", "demo", EnvLog())
    pods.count = 10_000_000
    tracemalloc.start()
    try:
        first = list(itertools.islice(pods.endpoints, 2))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first == ["demo-node-0-0.demo", "demo-node-0-1.demo"]
    assert peak < 100_000


def test_the_count_should_be_that_of_the_template_and_at_least_one() -> None:
    template = job("aux", None)
    template["template"]["spec"]["parallelism"] = 3
    idle = job("idle", None)
    idle["template"]["spec"]["parallelism"] = 0
    info = info_of(runtime(template, idle, job()))
    assert [pods.count for pods in info.pod_sets] == [3, 1, 1]


def test_containers_should_be_views_of_the_template() -> None:
    info = info_of(runtime(job("node", "trainer", container(), pod={"initContainers": [container("pre")]})))
    pods = info.pod_sets[0]
    found, init = pods.container("node"), pods.init_container("pre")
    assert found is not None
    assert init is not None
    assert pods.container("pre") is None
    found.spec["image"] = "other"
    template = info.template["replicatedJobs"][0]["template"]["spec"]["template"]
    assert template["spec"]["containers"][0]["image"] == "other"


def test_an_added_init_container_should_come_last() -> None:
    pods = info_of(runtime(job("node", "trainer", container(), pod={"initContainers": [container("pre")]}))).pod_sets[0]
    pods.add_init_container(container("late"))
    assert [each["name"] for each in pods.pod_spec["initContainers"]] == ["pre", "late"]
    assert [each.name for each in pods.init_containers] == ["pre", "late"]


def test_the_subdomain_of_the_template_should_win_over_the_name() -> None:
    named = info_of(runtime(template={"network": {"subdomain": "sub"}}), trainjob(trainer={}))
    assert named.pod_sets[0].first_endpoint == "demo-node-0-0.sub"
    assert info_of().pod_sets[0].first_endpoint == "demo-node-0-0.demo"
