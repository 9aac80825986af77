import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest

from ktrainer.client.discovery import Discovery, NoMatch
from ktrainer.kube.errors import ServiceUnavailable
from ktrainer.kube.identity import GroupVersionKind, Resource
from support.clients import client_and_server
from support.scriptedserver import Pause, Script, ScriptedServer, Seen, answer, failure
from support.virtualtime import VirtualClock

JOBS = Resource("batch", "v1", "Job", "jobs", namespaced=True)
NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
METRICS = GroupVersionKind("metrics.k8s.io", "v1beta1", "NodeMetrics")


class Kinds:
    """A server of kinds that come and go."""

    def __init__(self) -> None:
        self.by_path = {
            "/apis/batch/v1": [
                {"name": "jobs/status", "kind": "Job", "namespaced": True},
                {"name": "jobs", "kind": "Job", "namespaced": True, "verbs": ["get"]},
            ],
            "/api/v1": [{"name": "nodes", "kind": "Node", "namespaced": False}],
        }

    def respond(self, seen: Seen) -> Script:
        if seen.path.startswith("/apis/metrics.k8s.io"):
            return (failure(503, "ServiceUnavailable"),)
        if (resources := self.by_path.get(seen.path)) is None:
            return (failure(404, "NotFound"),)
        return Pause(0.01), answer(200, {"kind": "APIResourceList", "resources": resources})


@pytest.fixture
def kinds() -> Kinds:
    return Kinds()


@pytest.fixture
async def pair(kinds: Kinds, virtual_clock: VirtualClock) -> AsyncIterator[tuple[Discovery, ScriptedServer]]:
    async with client_and_server(virtual_clock) as (client, server):
        server.responder = kinds.respond
        yield Discovery(client, virtual_clock), server


@pytest.fixture
def discovery(pair: tuple[Discovery, ScriptedServer]) -> Discovery:
    return pair[0]


@pytest.fixture
def server(pair: tuple[Discovery, ScriptedServer]) -> ScriptedServer:
    return pair[1]


async def test_a_kind_should_be_found_and_remembered(discovery: Discovery, server: ScriptedServer) -> None:
    for _ in range(3):
        assert await discovery.find(JOBS.gvk) == JOBS
        assert await discovery.find(NODES.gvk) == NODES
        await asyncio.sleep(60)
    assert [seen.path for seen in server.requests] == ["/apis/batch/v1", "/api/v1"]


async def test_a_kind_that_is_missing_should_be_looked_for_again_every_ten_seconds(
    discovery: Discovery, server: ScriptedServer, kinds: Kinds
) -> None:
    kind = GroupVersionKind("batch", "v1", "CronJob")
    for _ in range(20):
        with pytest.raises(NoMatch, match="batch/v1, Kind=CronJob"):
            await discovery.find(kind)
        await asyncio.sleep(1)
    assert len(server.requests) == 2
    kinds.by_path["/apis/batch/v1"].append({"name": "cronjobs", "kind": "CronJob", "namespaced": True})
    await asyncio.sleep(10)
    assert (await discovery.find(kind)).plural == "cronjobs"


async def test_what_comes_and_goes_should_be_seen(discovery: Discovery, server: ScriptedServer, kinds: Kinds) -> None:
    resource = Resource("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", namespaced=True)
    assert not await discovery.exists(resource)
    kinds.by_path["/apis/trainer.kubeflow.org/v1alpha1"] = [{"name": "trainjobs", "kind": "TrainJob"}]
    assert not await discovery.exists(resource)
    await asyncio.sleep(10)
    assert await discovery.exists(resource)
    del kinds.by_path["/apis/trainer.kubeflow.org/v1alpha1"]
    assert await discovery.exists(resource)
    await asyncio.sleep(10)
    assert not await discovery.exists(resource)
    assert len(server.requests) == 3


async def test_a_broken_api_should_hurt_nobody_else(discovery: Discovery) -> None:
    with pytest.raises(ServiceUnavailable):
        await discovery.find(METRICS)
    assert await discovery.exists(JOBS)


async def test_a_failure_should_not_be_remembered(discovery: Discovery, server: ScriptedServer) -> None:
    server.will(failure(500, "InternalError"))
    with pytest.raises(Exception, match="500"):
        await discovery.find(JOBS.gvk)
    assert await discovery.find(JOBS.gvk) == JOBS


async def test_many_who_ask_should_ask_the_server_once(discovery: Discovery, server: ScriptedServer) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(20):
            group.create_task(discovery.exists(JOBS))
    assert len(server.requests) == 1


async def test_giving_up_should_leave_the_others_alone(discovery: Discovery, server: ScriptedServer) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await discovery.exists(JOBS)
    assert await discovery.exists(JOBS)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", orjson.dumps({"resources": [3]})])
async def test_nonsense_should_be_no_kinds(discovery: Discovery, server: ScriptedServer, body: bytes) -> None:
    server.will(answer(200, body))
    assert not await discovery.exists(JOBS)
