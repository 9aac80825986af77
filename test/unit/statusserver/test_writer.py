from typing import Any

import msgspec
import orjson
import pytest

from ktrainer.api.resources import TRAINJOBS
from ktrainer.kube.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.statusserver.refusal import Refusal
from ktrainer.statusserver.report import Report, Target
from ktrainer.statusserver.trainjobs import TrainJobs
from ktrainer.statusserver.writer import TRIES, ReportWriter

KEY = ObjectKey("team-a", "demo")
TARGET = Target(KEY, "u1")
FINISHED = [{"type": "Complete", "status": "True"}]


def report(at: str = "2026-01-02T03:04:05Z") -> Report:
    return Report({"progressPercentage": 5, "lastUpdatedTime": at})


class Server:
    """The API server: one TrainJob, which the cache may have in an earlier version."""

    def __init__(self, **status: Any) -> None:
        self.version = 1
        self.uid = "u1"
        self.status = status
        self.is_there = True
        self.faults: list[ApiError] = []
        self.applied: list[dict[str, Any]] = []
        self.gets = 0

    def body(self) -> bytes:
        metadata = {"namespace": "team-a", "name": "demo", "uid": self.uid, "resourceVersion": str(self.version)}
        return orjson.dumps({"metadata": metadata, "status": self.status})

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        self.gets += 1
        if not self.is_there:
            raise NotFound(404, "NotFound", "no")
        return self.body()

    async def apply(
        self, resource: Resource, key: ObjectKey, body: bytes, *, field_manager: str, subresource: str
    ) -> bytes:
        assert (resource, key, field_manager, subresource) == (TRAINJOBS, KEY, "trainer-status", "status")
        if self.faults:
            raise self.faults.pop(0)
        if not self.is_there:
            raise NotFound(404, "NotFound", "no")
        document = orjson.loads(body)
        metadata = document["metadata"]
        if (metadata["uid"], metadata["resourceVersion"]) != (self.uid, str(self.version)):
            raise Conflict(409, "Conflict", "another version")
        self.version += 1
        self.applied.append(document["status"]["trainerStatus"])
        return self.body()


class Bench:
    def __init__(self, server: Server) -> None:
        self.cached: dict[ObjectKey, CachedObject] = {}
        self.server = server
        self.writer = ReportWriter(TrainJobs(self.cached, server), server)
        self.sync()

    def sync(self) -> None:
        self.cached[KEY] = msgspec.json.decode(self.server.body(), type=CachedObject)


async def refusal_of(bench: Bench) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        await bench.writer.write(TARGET, report())
    assert bench.server.applied == []
    return caught.value.code, caught.value.reason


async def test_a_report_should_cost_one_request() -> None:
    server = Server()
    await Bench(server).writer.write(TARGET, report())
    assert server.applied == [report().trainer_status]
    assert server.gets == 0


async def test_a_stale_cache_should_be_made_good_by_looking_again() -> None:
    server = Server()
    bench = Bench(server)
    server.version = 5
    await bench.writer.write(TARGET, report())
    assert (len(server.applied), server.gets) == (1, 1)


async def test_a_finished_trainjob_should_not_be_written_to() -> None:
    assert await refusal_of(Bench(Server(conditions=FINISHED))) == (409, "Conflict")


async def test_an_end_that_the_cache_has_not_seen_should_count() -> None:
    server = Server()
    bench = Bench(server)
    server.status, server.version = {"conditions": FINISHED}, 2
    assert await refusal_of(bench) == (409, "Conflict")


async def test_a_namesake_should_not_be_written_to() -> None:
    server = Server()
    bench = Bench(server)
    server.uid, server.version = "u2", 2
    assert await refusal_of(bench) == (404, "NotFound")
    bench.sync()
    assert await refusal_of(bench) == (404, "NotFound")


async def test_a_trainjob_that_has_gone_should_be_told_so() -> None:
    server = Server()
    bench = Bench(server)
    server.is_there = False
    assert await refusal_of(bench) == (404, "NotFound")
    bench.cached.clear()
    assert await refusal_of(bench) == (404, "NotFound")


async def test_a_trainjob_that_does_not_stop_changing_should_not_keep_us_for_ever() -> None:
    server = Server()
    server.faults = [Conflict(409, "Conflict", "again")] * TRIES
    assert await refusal_of(Bench(server)) == (500, "InternalError")


async def test_a_rule_that_only_the_cluster_knows_should_be_told() -> None:
    server = Server()
    server.faults = [Invalid(422, "Invalid", "status.trainerStatus: no")]
    assert await refusal_of(Bench(server)) == (422, "Invalid")


async def test_a_fault_should_not_be_taken_for_a_refusal() -> None:
    server = Server()
    server.faults = [Forbidden(403, "Forbidden", "the manager may not")]
    with pytest.raises(Forbidden):
        await Bench(server).writer.write(TARGET, report())


@pytest.mark.parametrize(
    "stored, is_written",
    [("2026-01-02T03:04:04Z", True), ("2026-01-02T03:04:05Z", True), ("2026-01-02T03:04:06Z", False)],
)
async def test_a_kept_report_should_not_replace_a_later_one(stored: str, is_written: bool) -> None:
    server = Server(trainerStatus={"lastUpdatedTime": stored})
    await Bench(server).writer.write(TARGET, report(), unless_newer=True)
    assert bool(server.applied) is is_written


async def test_a_new_report_should_be_written_whatever_its_clock_says() -> None:
    server = Server(trainerStatus={"lastUpdatedTime": "2027-01-01T00:00:00Z"})
    await Bench(server).writer.write(TARGET, report())
    assert len(server.applied) == 1
