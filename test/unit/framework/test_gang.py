from typing import Any

import pytest

from ktrainer.framework.gang import gang_of, gang_spec_of
from support.training import container, info_of, job, runtime, trainjob

COMPLETE = {"status": "Complete"}


def names(jobs: list[dict[str, Any]], **template: Any) -> list[str]:
    info = info_of(runtime(*jobs, template=template, mlPolicy={"numNodes": 2}))
    return [pods.name for pods in gang_of(info)]


def test_without_an_order_every_job_should_be_in_the_gang() -> None:
    assert names([job("a", None), job("b", None), job()]) == ["a", "b", "node"]


def test_a_job_that_is_waited_for_should_be_outside() -> None:
    jobs = [job("a", None), job("b", None), job(dependsOn=[{"name": "a", **COMPLETE}])]
    assert names(jobs) == ["node"]


def test_a_job_that_waits_for_the_nodes_should_be_outside() -> None:
    jobs = [job(), job("aux", None), job("late", None, dependsOn=[{"name": "node", "status": "Ready"}])]
    assert names(jobs) == ["node", "aux"]


def test_jobs_that_wait_for_the_same_should_start_together() -> None:
    waits = [{"name": "a", **COMPLETE}, {"name": "b", **COMPLETE}]
    jobs = [job("a", None), job("b", None), job("aux", None, dependsOn=waits[::-1]), job(dependsOn=waits)]
    assert names(jobs) == ["aux", "node"]


def test_waiting_for_another_state_should_be_another_wave() -> None:
    jobs = [
        job("a", None),
        job("aux", None, dependsOn=[{"name": "a", "status": "Ready"}]),
        job(dependsOn=[{"name": "a", **COMPLETE}]),
    ]
    assert names(jobs) == ["node"]


@pytest.mark.parametrize(("order", "wanted"), [("InOrder", ["node"]), ("AnyOrder", ["a", "node"])])
def test_jobs_in_order_should_be_waves_of_their_own(order: str, wanted: list[str]) -> None:
    assert names([job("a", None), job()], startupPolicy={"startupPolicyOrder": order}) == wanted


def test_without_a_sized_job_everything_should_be_in_the_gang() -> None:
    assert names([job("a", None), job("b", None, dependsOn=[{"name": "a", **COMPLETE}])]) == ["a", "b"]


def test_members_and_resources_should_count_pods_but_not_replicas() -> None:
    wants = {"requests": {"cpu": "1500m", "memory": "1Gi"}}
    aux = job("aux", None, container("a", resources=wants), replicas=3)
    node = job("node", "trainer", container(resources=wants))
    info = info_of(runtime(aux, node, mlPolicy={"numNodes": 3}), trainjob(trainer={}))
    assert gang_spec_of(gang_of(info)) == {"minMember": 4, "minResources": {"cpu": "6", "memory": "4Gi"}}


def test_a_gang_that_asks_for_nothing_should_say_so_as_in_the_original() -> None:
    info = info_of(runtime(job("node", "trainer", container())))
    assert gang_spec_of(gang_of(info)) == {"minMember": 1, "minResources": {}}
