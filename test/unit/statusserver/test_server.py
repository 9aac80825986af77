from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
import msgspec
import orjson
import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from ktrainer.api.progress import status_path_of
from ktrainer.api.resources import JOBSETS, PODS, TRAINJOBS
from ktrainer.kube.errors import NotFound, ServiceUnavailable
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.serving.address import Address
from ktrainer.machinery.serving.connections import DRAIN_SECONDS
from ktrainer.machinery.serving.reviews import Reviews
from ktrainer.statusserver.authorizer import ReportAuthorizer
from ktrainer.statusserver.callers import BURST, Callers
from ktrainer.statusserver.desk import Desk
from ktrainer.statusserver.handler import MAX_BODY_BYTES, HandlerParts, ProgressHandler
from ktrainer.statusserver.metrics import CODES, ProgressMetrics
from ktrainer.statusserver.server import HEADER_SECONDS, ProgressServer
from ktrainer.statusserver.trainjobs import TrainJobs
from ktrainer.statusserver.writer import ReportWriter
from support.httpserving import build_context

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.virtualtime import VirtualClock

KEY = ObjectKey("team-a", "demo")
GOOD = "good"
PATH = status_path_of(KEY)
STATUS = {"progressPercentage": 50, "lastUpdatedTime": "2026-01-02T03:04:05Z"}
FINISHED = {"conditions": [{"type": "Complete", "status": "True"}]}


class Api:
    """The API server: a TrainJob with its JobSet and one pod, whose token is `good`."""

    def __init__(self) -> None:
        labels = {"jobset.sigs.k8s.io/jobset-name": "demo", "jobset.sigs.k8s.io/jobset-uid": "j1"}
        owner = {"apiVersion": "v1", "kind": "TrainJob", "name": "demo", "uid": "u1", "controller": True}
        self.objects: dict[tuple[Resource, ObjectKey], dict[str, Any]] = {
            (PODS, ObjectKey("team-a", "pod")): {"metadata": {"uid": "p1", "labels": labels}},
            (JOBSETS, KEY): {"metadata": {"uid": "j1", "ownerReferences": [owner]}},
            (TRAINJOBS, KEY): {"metadata": {"uid": "u1", "resourceVersion": "1"}},
        }
        self.applied: list[Any] = []
        self.fault: Exception | None = None
        self.seconds = 0.0
        """How long an apply takes."""

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        spec = orjson.loads(body)["spec"]
        extra = {
            "authentication.kubernetes.io/pod-name": ["pod"],
            "authentication.kubernetes.io/pod-uid": ["p1"],
        }
        user = {"username": "system:serviceaccount:team-a:default", "extra": extra}
        is_good = spec["token"] == GOOD
        status = {"authenticated": is_good, "user": user, "audiences": spec["audiences"]} if is_good else {}
        return orjson.dumps({"status": status})

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        if (resource, key) not in self.objects:
            raise NotFound(404, "NotFound", "no")
        return orjson.dumps(self.objects[resource, key])

    async def apply(
        self, resource: Resource, key: ObjectKey, body: bytes, *, field_manager: str, subresource: str
    ) -> bytes:
        await asyncio.sleep(self.seconds)
        if self.fault is not None:
            raise self.fault
        self.applied.append(orjson.loads(body)["status"]["trainerStatus"])
        return b"{}"


class Bench:
    def __init__(self, folder: Path, clock: VirtualClock) -> None:
        self.api = Api()
        self.registry = CollectorRegistry()
        self.cached: dict[ObjectKey, CachedObject] = {}
        metrics = ProgressMetrics(self.registry)
        trainjobs = TrainJobs(self.cached, self.api)
        desk = Desk(ReportWriter(trainjobs, self.api), metrics, clock)
        authorizer = ReportAuthorizer(Reviews(self.api, clock, Random(1)), self.api, clock)
        handler = ProgressHandler(HandlerParts(authorizer, trainjobs, desk, Callers(clock), metrics))
        self.server = ProgressServer(Address("127.0.0.1", 0), build_context(folder), handler, desk)
        self.port = 0

    async def post(
        self, body: Any = None, *, token: str = GOOD, path: str = PATH, method: str = "POST"
    ) -> tuple[int, Any]:
        data = body if isinstance(body, bytes) else orjson.dumps({"trainerStatus": STATUS} if body is None else body)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method, f"https://127.0.0.1:{self.port}{path}", data=data, headers=headers, ssl=False
            ) as response,
        ):
            return response.status, orjson.loads(await response.read() or b"null")

    def count(self, code: int) -> float | None:
        return self.registry.get_sample_value("ktrainer_progress_requests_total", {"code": str(code)})


@pytest.fixture
def bench(tmp_path: Path, virtual_clock: VirtualClock) -> Bench:
    return Bench(tmp_path, virtual_clock)


@asynccontextmanager
async def serving(bench: Bench) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(bench.server.run())
        bench.port = await bench.server.wait_listening()
        yield
        bench.server.stop()


async def test_a_report_should_be_written_and_echoed(bench: Bench) -> None:
    async with serving(bench):
        assert await bench.post() == (200, {"trainerStatus": STATUS})
    assert bench.api.applied == [STATUS]
    assert bench.count(200) == 1


async def test_an_empty_object_should_be_taken_and_nothing_be_done(bench: Bench) -> None:
    async with serving(bench):
        assert await bench.post({}) == (200, {})
        bench.api.objects[TRAINJOBS, KEY]["status"] = FINISHED
        assert (await bench.post({}))[0] == 200
    assert bench.api.applied == []


@pytest.mark.parametrize(
    "arguments, code, reason",
    [
        pytest.param({"token": ""}, 403, "Forbidden", id="no token"),
        pytest.param({"token": "bad"}, 403, "Forbidden", id="bad token"),
        pytest.param({"token": "bad", "body": {}}, 403, "Forbidden", id="bad token and nothing to say"),
        pytest.param({"method": "PUT"}, 404, "NotFound", id="method"),
        pytest.param({"method": "GET"}, 404, "NotFound", id="reading"),
        pytest.param({"path": "/"}, 404, "NotFound", id="path"),
        pytest.param({"path": PATH + "/"}, 404, "NotFound", id="longer path"),
        pytest.param({"path": PATH.replace("demo", "none")}, 404, "NotFound", id="no such TrainJob"),
        pytest.param({"path": PATH.replace("team-a", "team-b")}, 403, "Forbidden", id="other namespace"),
        pytest.param({"body": b" " * (MAX_BODY_BYTES + 1)}, 413, "RequestEntityTooLarge", id="too large"),
        pytest.param({"body": b"{"}, 422, "Invalid", id="no JSON"),
        pytest.param({"body": {"trainerStatus": {}}}, 422, "Invalid", id="no time"),
    ],
)
async def test_what_is_refused_should_be_told_in_a_status(
    bench: Bench, arguments: dict[str, Any], code: int, reason: str
) -> None:
    async with serving(bench):
        status, answer = await bench.post(**arguments)
    assert (status, answer["kind"], answer["code"], answer["reason"]) == (code, "Status", code, reason)
    assert bench.api.applied == []
    assert bench.count(code) == 1


async def test_a_body_of_the_largest_size_should_be_read(bench: Bench) -> None:
    body = orjson.dumps({"trainerStatus": STATUS})
    async with serving(bench):
        assert (await bench.post(body + b" " * (MAX_BODY_BYTES - len(body))))[0] == 200


async def test_a_large_body_without_a_length_should_be_refused_too(bench: Bench) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MAX_BODY_BYTES // 1024 + 1):
            yield b" " * 1024

    async with serving(bench), aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{bench.port}{PATH}"
        async with session.post(url, data=chunks(), ssl=False) as response:
            assert response.status == 413


async def test_a_pod_that_is_not_part_of_the_trainjob_should_be_refused(bench: Bench) -> None:
    bench.api.objects[PODS, ObjectKey("team-a", "pod")]["metadata"]["labels"] = {}
    async with serving(bench):
        assert (await bench.post())[0] == 403
    assert bench.api.applied == []


async def test_a_finished_trainjob_should_take_no_report(bench: Bench) -> None:
    bench.api.objects[TRAINJOBS, KEY]["status"] = FINISHED
    async with serving(bench):
        assert (await bench.post())[0] == 409
    assert bench.api.applied == []


async def test_who_comes_too_early_and_too_late_should_be_told_that_it_is_too_late(bench: Bench) -> None:
    async with serving(bench):
        assert (await bench.post())[0] == 200
        bench.api.objects[TRAINJOBS, KEY]["status"] = FINISHED
        assert (await bench.post())[0] == 409
    assert bench.api.applied == [STATUS]


async def test_the_cache_should_be_enough_for_what_it_has(bench: Bench) -> None:
    bench.cached[KEY] = msgspec.json.decode(orjson.dumps(bench.api.objects.pop((TRAINJOBS, KEY))), type=CachedObject)
    async with serving(bench):
        assert (await bench.post())[0] == 200


@pytest.mark.parametrize("status", [{}, FINISHED])
async def test_a_namesake_that_has_gone_should_not_be_taken_for_the_trainjob(
    bench: Bench, status: dict[str, Any]
) -> None:
    gone = {"metadata": {"uid": "u0", "resourceVersion": "0"}, "status": status}
    bench.cached[KEY] = msgspec.json.decode(orjson.dumps(gone), type=CachedObject)
    async with serving(bench):
        assert (await bench.post())[0] == 200
    assert bench.api.applied == [STATUS]


async def test_what_comes_too_early_should_be_written_before_the_end(bench: Bench) -> None:
    later = STATUS | {"progressPercentage": 60}
    async with serving(bench):
        assert (await bench.post())[0] == 200
        code, answer = await bench.post({"trainerStatus": later})
        assert (code, answer["details"]) == (429, {"retryAfterSeconds": 5})
        assert bench.api.applied == [STATUS]
    assert bench.api.applied == [STATUS, later]


async def test_reports_should_be_taken_while_pods_are_still_sent_here_and_be_written_before_the_end(
    bench: Bench, virtual_clock: VirtualClock
) -> None:
    reports = [{"trainerStatus": STATUS | {"progressPercentage": number}} for number in range(3)]
    async with serving(bench):
        assert (await bench.post(reports[0]))[0] == 200
        bench.server.stop()
        await asyncio.sleep(DRAIN_SECONDS - 1)
        assert [(await bench.post(report))[0] for report in reports[1:]] == [200, 429]
    assert bench.api.applied == [report["trainerStatus"] for report in reports]
    assert virtual_clock.monotonic() == pytest.approx(DRAIN_SECONDS)


async def test_a_client_that_floods_should_be_refused_before_anybody_is_asked(bench: Bench) -> None:
    async with serving(bench):
        codes = [(await bench.post(token="bad"))[0] for _ in range(BURST + 1)]
    assert codes == [403] * BURST + [429]


async def test_a_fault_should_be_told_without_its_text(bench: Bench) -> None:
    bench.api.fault = ServiceUnavailable(503, "ServiceUnavailable", "t0ken")
    async with serving(bench):
        with capture_logs() as logs:
            code, answer = await bench.post()
    assert (code, answer["reason"]) == (500, "InternalError")
    assert "t0ken" not in str(answer) + str(logs)
    assert [(each["error"], each["code"]) for each in logs if each["log_level"] == "warning"] == [
        ("ServiceUnavailable", 503)
    ]


async def test_an_api_server_that_hangs_should_not_keep_the_client_for_ever(
    bench: Bench, virtual_clock: VirtualClock
) -> None:
    bench.api.seconds = 60
    async with serving(bench):
        assert (await bench.post())[0] == 500
        assert virtual_clock.monotonic() == pytest.approx(10)
        bench.api.seconds = 0
    assert bench.api.applied == [STATUS], "it was kept"


async def test_a_body_that_does_not_come_should_not_be_awaited_for_ever(
    bench: Bench, virtual_clock: VirtualClock
) -> None:
    async def drip() -> AsyncIterator[bytes]:
        while True:
            yield b" "
            await asyncio.sleep(1)

    async with serving(bench), aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{bench.port}{PATH}"
        async with session.post(url, data=drip(), ssl=False) as response:
            assert response.status == 408
        assert virtual_clock.monotonic() == pytest.approx(10, abs=1)


async def test_a_head_that_does_not_come_should_not_be_awaited_for_ever(
    bench: Bench, virtual_clock: VirtualClock
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with serving(bench):
        reader, writer = await asyncio.open_connection("127.0.0.1", bench.port, ssl=context)
        writer.write(b"POST /")
        assert await reader.read() == b""
        assert virtual_clock.monotonic() == pytest.approx(HEADER_SECONDS)
        writer.close()


async def test_neither_tokens_nor_bodies_should_be_logged(bench: Bench) -> None:
    metric = {"name": "s3cret", "value": "s3cret"}
    with capture_logs() as logs:
        async with serving(bench):
            await bench.post({"trainerStatus": STATUS | {"metrics": [metric]}})
            await bench.post({"trainerStatus": {"metrics": [metric]}})
            await bench.post(token="s3cret")
            bench.api.fault = OSError("s3cret")
            await asyncio.sleep(6)
            await bench.post({"trainerStatus": STATUS | {"metrics": [metric]}})
    assert "s3cret" not in str(logs)
    assert GOOD not in str(logs)


async def test_every_code_should_have_its_series(bench: Bench) -> None:
    assert [bench.count(code) for code in CODES] == [0.0] * len(CODES)
