from random import Random
from typing import Any

import orjson
import pytest

from ktrainer.kube.identity import Resource
from ktrainer.machinery.serving.reviews import Reviews, bearer_token_of
from support.virtualtime import VirtualClock

USER = {"username": "system:serviceaccount:team-a:default", "extra": {"b": ["2"], "a": ["1"]}}


class Api:
    """An API server with one answer for all tokens."""

    def __init__(self, **status: Any) -> None:
        self.status = status
        self.asked: list[dict[str, Any]] = []

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        self.asked.append(orjson.loads(body)["spec"])
        return orjson.dumps({"status": self.status})


async def test_a_token_should_be_reviewed_for_its_audience(virtual_clock: VirtualClock) -> None:
    api = Api(authenticated=True, user=USER, audiences=["ours"])
    user = await Reviews(api, virtual_clock, Random(1)).user_of("secret", "ours")
    assert user is not None
    assert (user.name, user.extra) == (USER["username"], b'{"a":["1"],"b":["2"]}')
    assert api.asked == [{"token": "secret", "audiences": ["ours"]}]


@pytest.mark.parametrize("audiences", [None, [], ["theirs"], "not-ours", 1])
async def test_a_token_for_another_audience_should_be_nobodys(audiences: Any, virtual_clock: VirtualClock) -> None:
    api = Api(authenticated=True, user=USER, audiences=audiences)
    assert await Reviews(api, virtual_clock, Random(1)).user_of("secret", "ours") is None


async def test_an_answer_for_one_audience_should_not_count_for_another(virtual_clock: VirtualClock) -> None:
    api = Api(authenticated=True, user=USER, audiences=["ours"])
    reviews = Reviews(api, virtual_clock, Random(1))
    assert await reviews.user_of("secret", "ours") is not None
    assert await reviews.user_of("secret", "theirs") is None
    assert await reviews.user_of("secret", "ours") is not None
    assert len(api.asked) == 2


@pytest.mark.parametrize(
    "header, token",
    [
        ("Bearer abc", "abc"),
        ("  bEARER   abc  ", "abc"),
        ("Bearer", ""),
        ("Basic abc", ""),
        ("", ""),
        (None, ""),
        ("Bearer \udce4bc", ""),
    ],
)
def test_only_a_bearer_token_should_be_taken_from_a_header(header: str | None, token: str) -> None:
    assert bearer_token_of(header) == token
