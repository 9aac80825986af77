from typing import Any

import msgspec
import orjson
import pytest

from ktrainer.api.resources import TRAINJOBS
from ktrainer.kube.errors import NotFound
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.kube.timestamp import parse_time
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.statusserver.trainjobs import Standing, TrainJobs, standing_of

KEY = ObjectKey("team-a", "demo")
AT = "2026-01-02T03:04:05Z"


def trainjob(version: str = "1", **status: Any) -> bytes:
    metadata = {"namespace": "team-a", "name": "demo", "uid": "u1", "resourceVersion": version}
    return orjson.dumps({"metadata": metadata, "status": status} if status else {"metadata": metadata})


def cached(body: bytes) -> CachedObject:
    return msgspec.json.decode(body, type=CachedObject)


class Server:
    def __init__(self, body: bytes | None) -> None:
        self.body = body
        self.asked = 0

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        assert (resource, key) == (TRAINJOBS, KEY)
        self.asked += 1
        if self.body is None:
            raise NotFound(404, "NotFound", "no")
        return self.body


async def test_what_the_cache_has_should_not_be_asked_for() -> None:
    server = Server(trainjob("2"))
    found = await TrainJobs({KEY: cached(trainjob("1"))}, server).find(KEY)
    assert found == Standing("u1", "1", is_finished=False, reported_at=None)
    assert server.asked == 0


@pytest.mark.parametrize("body", [trainjob("2"), None])
async def test_what_the_cache_lacks_should_be_asked_for(body: bytes | None) -> None:
    found = await TrainJobs({}, Server(body)).find(KEY)
    assert (found.resource_version if found else None) == ("2" if body else None)


@pytest.mark.parametrize(
    "type_, status, is_finished",
    [
        ("Complete", "True", True),
        ("Failed", "True", True),
        ("Failed", "False", False),
        ("Suspended", "True", False),
    ],
)
def test_a_trainjob_should_be_finished_when_it_is_complete_or_failed(
    type_: str, status: str, is_finished: bool
) -> None:
    standing = standing_of(cached(trainjob(conditions=[{"type": type_, "status": status}])))
    assert standing.is_finished is is_finished


@pytest.mark.parametrize("text, at", [(AT, parse_time(AT)), ("yesterday", None), (None, None)])
def test_the_time_of_the_last_report_should_be_known(text: str | None, at: object) -> None:
    assert standing_of(cached(trainjob(trainerStatus={"lastUpdatedTime": text}))).reported_at == at
