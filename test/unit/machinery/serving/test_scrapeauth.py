import asyncio
from random import Random
from typing import Any

import orjson
import pytest
from structlog.testing import capture_logs

from ktrainer.kube.errors import Forbidden, ServiceUnavailable
from ktrainer.kube.identity import Resource
from ktrainer.machinery.serving.reviews import MAX_REMEMBERED, MAX_REVIEWS, TOKEN_REVIEWS, Refused
from ktrainer.machinery.serving.scrapeauth import ACCESS_REVIEWS, ScrapeAuthorizer
from support.virtualtime import VirtualClock

PROMETHEUS = {"username": "prometheus", "uid": "1", "groups": ["monitoring"], "extra": {"scope": ["a"]}}


class Api:
    """The API server: knows tokens and what their owners may do."""

    def __init__(self) -> None:
        self.users: dict[str, Any] = {"good": PROMETHEUS, "poor": {"username": "poor"}}
        self.allowed = {"prometheus"}
        self.faults: list[Exception | bytes | None] = []
        self.reviews: list[tuple[Resource, dict[str, Any]]] = []
        self.seconds = 0.0
        """How long a review takes."""
        self.at_once = 0
        self.most_at_once = 0

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        spec = orjson.loads(body)["spec"]
        self.reviews.append((resource, spec))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.at_once -= 1
        fault = self.faults.pop(0) if self.faults else None
        if isinstance(fault, Exception):
            raise fault
        return fault if fault is not None else orjson.dumps({"status": self._status_of(resource, spec)})

    def _status_of(self, resource: Resource, spec: dict[str, Any]) -> dict[str, Any]:
        if resource == TOKEN_REVIEWS:
            user = self.users.get(spec["token"])
            return {"authenticated": user is not None} | ({"user": user} if user is not None else {})
        return {"allowed": spec["user"] in self.allowed}

    def count(self, resource: Resource) -> int:
        return len([each for each, _ in self.reviews if each == resource])


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def authorizer(api: Api, virtual_clock: VirtualClock) -> ScrapeAuthorizer:
    return ScrapeAuthorizer(api, virtual_clock, Random(1))


async def status_of(authorizer: ScrapeAuthorizer, header: str | None) -> int:
    try:
        await authorizer.check(header, "/metrics")
    except Refused as refusal:
        return refusal.status
    return 200


async def test_who_may_should_pass_and_be_asked_for_as_who_it_is(api: Api, authorizer: ScrapeAuthorizer) -> None:
    await authorizer.check("Bearer good", "/metrics")
    assert api.reviews == [
        (TOKEN_REVIEWS, {"token": "good"}),
        (
            ACCESS_REVIEWS,
            {
                "user": "prometheus",
                "uid": "1",
                "groups": ["monitoring"],
                "extra": {"scope": ["a"]},
                "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
            },
        ),
    ]


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Basic good", "good", "Bearer bad"])
async def test_who_cannot_be_recognised_should_be_refused(authorizer: ScrapeAuthorizer, header: str | None) -> None:
    assert await status_of(authorizer, header) == 401


@pytest.mark.parametrize("header", ["bearer good", "  BEARER   good  "])
async def test_the_scheme_should_be_spelt_as_one_likes(authorizer: ScrapeAuthorizer, header: str) -> None:
    assert await status_of(authorizer, header) == 200


async def test_who_may_not_should_be_refused(authorizer: ScrapeAuthorizer) -> None:
    assert await status_of(authorizer, "Bearer poor") == 403


@pytest.mark.parametrize("user", [{"username": "system:anonymous"}, {"username": ""}, {}, "x", {"username": 5}])
async def test_nobody_in_particular_should_be_refused(api: Api, authorizer: ScrapeAuthorizer, user: Any) -> None:
    api.allowed |= {"system:anonymous", ""}
    api.users["odd"] = user
    assert await status_of(authorizer, "Bearer odd") == 401


async def test_odd_users_should_be_asked_for_without_what_is_odd(api: Api, authorizer: ScrapeAuthorizer) -> None:
    api.users["odd"] = {"username": "prometheus", "groups": "x", "extra": 5, "uid": None}
    assert await status_of(authorizer, "Bearer odd") == 200
    spec = api.reviews[1][1]
    assert (spec["groups"], spec["extra"], spec["uid"]) == ([], {}, "")


async def test_a_denial_should_beat_an_allowance(api: Api, authorizer: ScrapeAuthorizer) -> None:
    api.faults = [None, orjson.dumps({"status": {"allowed": True, "denied": True}})]
    assert await status_of(authorizer, "Bearer good") == 403


@pytest.mark.parametrize("header, status", [("Bearer good", 200), ("Bearer bad", 401)])
async def test_tokens_should_be_remembered_for_a_minute(
    api: Api, authorizer: ScrapeAuthorizer, header: str, status: int
) -> None:
    for _ in range(6):
        assert await status_of(authorizer, header) == status
        await asyncio.sleep(9.9)
    assert api.count(TOKEN_REVIEWS) == 1
    await asyncio.sleep(1)
    await status_of(authorizer, header)
    assert api.count(TOKEN_REVIEWS) == 2


@pytest.mark.parametrize("header, seconds", [("Bearer good", 300), ("Bearer poor", 30)])
async def test_allowances_should_be_remembered_for_longer_than_denials(
    api: Api, authorizer: ScrapeAuthorizer, header: str, seconds: float
) -> None:
    await status_of(authorizer, header)
    await asyncio.sleep(seconds - 0.1)
    await status_of(authorizer, header)
    assert api.count(ACCESS_REVIEWS) == 1
    await asyncio.sleep(0.1)
    await status_of(authorizer, header)
    assert api.count(ACCESS_REVIEWS) == 2


async def test_a_server_that_fails_for_a_moment_should_be_asked_again(
    api: Api, authorizer: ScrapeAuthorizer, virtual_clock: VirtualClock
) -> None:
    api.faults = [ServiceUnavailable(503, "", "down")] * 4
    assert await status_of(authorizer, "Bearer good") == 200
    assert 4.06 <= virtual_clock.monotonic() < 4.06 * 1.2 + 0.01


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(ServiceUnavailable(503, "", "down"), id="down"),
        pytest.param(b"<html>", id="HTML"),
        pytest.param(b"[]", id="list"),
        pytest.param(b"{}", id="no status"),
        pytest.param(b'{"status": []}', id="no verdict"),
        pytest.param(OSError("reset"), id="reset"),
    ],
)
async def test_a_server_that_cannot_be_asked_should_let_nobody_pass(
    api: Api, authorizer: ScrapeAuthorizer, fault: Any
) -> None:
    api.faults = [fault] * 5
    assert await status_of(authorizer, "Bearer good") == 500
    assert len(api.reviews) == 5
    api.faults = [None, *[fault] * 5]
    assert await status_of(authorizer, "Bearer good") == 500
    assert await status_of(authorizer, "Bearer good") == 200


async def test_a_server_that_hangs_should_let_nobody_pass(
    api: Api, authorizer: ScrapeAuthorizer, virtual_clock: VirtualClock
) -> None:
    api.seconds = 3600
    assert await status_of(authorizer, "Bearer good") == 500
    assert virtual_clock.monotonic() == 10


async def test_what_will_not_heal_should_not_be_asked_again(api: Api, authorizer: ScrapeAuthorizer) -> None:
    api.faults = [Forbidden(403, "Forbidden", "no reviews for you")]
    assert await status_of(authorizer, "Bearer good") == 500
    assert len(api.reviews) == 1


async def test_strangers_should_not_be_able_to_flood_the_server(api: Api, authorizer: ScrapeAuthorizer) -> None:
    api.seconds = 1
    async with asyncio.TaskGroup() as tasks:
        for number in range(20):
            tasks.create_task(status_of(authorizer, f"Bearer {number}"))
    assert api.most_at_once == MAX_REVIEWS


async def test_the_memory_should_be_limited(api: Api, authorizer: ScrapeAuthorizer) -> None:
    for number in range(MAX_REMEMBERED + 1):
        await status_of(authorizer, f"Bearer {number}")
    before = api.count(TOKEN_REVIEWS)
    await status_of(authorizer, f"Bearer {MAX_REMEMBERED}")
    assert api.count(TOKEN_REVIEWS) == before
    await status_of(authorizer, "Bearer 0")
    assert api.count(TOKEN_REVIEWS) == before + 1


async def test_strangers_should_not_make_us_forget_whom_we_know(api: Api, authorizer: ScrapeAuthorizer) -> None:
    await status_of(authorizer, "Bearer good")
    for number in range(MAX_REMEMBERED):
        await status_of(authorizer, f"Bearer {number}")
    before = api.count(TOKEN_REVIEWS)
    await status_of(authorizer, "Bearer good")
    assert api.count(TOKEN_REVIEWS) == before


async def test_tokens_should_never_be_logged(api: Api, authorizer: ScrapeAuthorizer) -> None:
    api.users["t0ken"] = {"username": "poor"}
    with capture_logs() as logs:
        await status_of(authorizer, "Bearer t0ken")
        api.faults = [OSError("t0ken2 was refused")] * 5
        await status_of(authorizer, "Bearer t0ken2")
    assert len(logs) == 2
    assert "t0ken" not in str(logs)
