import asyncio

import aiohttp
import orjson
import pytest

from clusters.ports import LOOPBACK, free_ports
from ktrainer.client.config.config import ConnectionConfig, TlsConfig
from ktrainer.client.events.body import ObjectReference
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.control.controller import ControllerSettings
from ktrainer.machinery.control.reconcile import Result
from ktrainer.machinery.operator import Operator, OperatorSettings
from support.patience import Patient
from support.scriptedserver import answer, failure, serving

NOBODY = ConnectionConfig("http://127.0.0.1:1")
"""An API server that is not there."""
PODS = Resource("", "v1", "Pod", "pods", namespaced=True)

pytestmark = pytest.mark.realtime


def free_address() -> str:
    (port,) = free_ports(1)
    return f"{LOOPBACK}:{port}"


async def text_of(url: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session:
        for _ in range(200):
            try:
                async with session.get(url) as answer:
                    return answer.status, await answer.text()
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.02)
    raise AssertionError(f"nobody answers at {url}")


async def test_an_operator_should_work_through_its_queue_and_stop_when_asked() -> None:
    operator = Operator(NOBODY, OperatorSettings("test"), terminator=Patient())
    seen: list[ObjectKey] = []

    async def reconcile(key: ObjectKey) -> Result:
        seen.append(key)
        operator.request_stop()
        return Result()

    operator.controller(ControllerSettings("test"), reconcile).add(ObjectKey("a", "b"))
    await operator.run()
    assert seen == [ObjectKey("a", "b")]


async def test_an_operator_should_tell_why_it_is_not_ready_and_do_no_work_meanwhile() -> None:
    health, metrics = free_address(), free_address()
    settings = OperatorSettings("test", lease_name="test", health_address=health)
    operator = Operator(NOBODY, settings, writes=[PODS], terminator=Patient())
    operator.serve_metrics(metrics)
    operator.informer(View(PODS, CachedObject))

    async def reconcile(key: ObjectKey) -> Result:
        raise AssertionError("nothing may be done before the caches are complete")

    operator.controller(ControllerSettings("test"), reconcile).add(ObjectKey("a", "b"))
    running = asyncio.create_task(operator.run())
    status, text = await text_of(f"http://{health}/readyz")
    assert status == 500
    assert "pods has not synced" in text
    assert (await text_of(f"http://{health}/healthz"))[0] == 200
    status, text = await text_of(f"http://{metrics}/metrics")
    assert status == 200
    assert 'workqueue_depth{controller="test",name="test"' in text
    operator.request_stop()
    await running


async def test_an_operator_should_tell_at_once_that_the_server_sheds_load() -> None:
    async with serving() as server:
        server.responder = lambda _: (failure(429, "TooManyRequests", headers=[("Retry-After", "5")]),)
        config = ConnectionConfig(server.url, TlsConfig(insecure=True))
        operator = Operator(config, OperatorSettings("test"), terminator=Patient())
        operator.informer(View(PODS, CachedObject))
        running = asyncio.create_task(operator.run())
        async with asyncio.timeout(4):
            while "TooManyRequests" not in operator.cache.unsynced()["pods"]:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
        operator.request_stop()
        await running


async def test_who_does_not_lead_should_send_no_events_of_controllers_but_those_of_the_program() -> None:
    async with serving() as server:
        server.responder = lambda seen: (answer(201) if "/events" in seen.path else failure(503, "ServiceUnavailable"),)
        config = ConnectionConfig(server.url, TlsConfig(insecure=True))
        operator = Operator(config, OperatorSettings("test", lease_name="lease"), terminator=Patient())
        controllers = operator.recorder_of("controller")
        running = asyncio.create_task(operator.run())
        regarding = ObjectReference("v1", "Pod", "ns", "pod", "1")
        for number in range(20):
            controllers.record(regarding, "Normal", "Reason", "Action", str(number))
        operator.recorder.record(regarding, "Normal", "Reason", "Action", "all")
        async with asyncio.timeout(4):
            while not any("/events" in seen.path for seen in server.requests):  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
        operator.request_stop()
        await running
        events = [orjson.loads(seen.body) for seen in server.requests if "/events" in seen.path]
        assert [event["note"] for event in events] == ["all"]
