from collections.abc import AsyncIterator

import pytest

from ktrainer.machinery.serving.address import Address
from ktrainer.machinery.serving.health import HealthChecks, Unhealthy
from ktrainer.machinery.serving.healthserver import build_health_server
from support.httpserving import fetch, serving


def fail() -> None:
    raise Unhealthy("broken")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    live, ready = HealthChecks("healthz"), HealthChecks("readyz")
    live.add("ping", lambda: None)
    ready.add("ping", lambda: None)
    ready.add("caches", fail)
    async with serving(build_health_server(Address("127.0.0.1", 0), [live, ready])) as port:
        yield port


@pytest.mark.parametrize(
    "path, status, text",
    [
        ("/healthz", 200, "ok"),
        ("/healthz/", 200, "ok"),
        ("/healthz/ping", 200, "ok"),
        ("/healthz?verbose", 200, "[+]ping ok\nhealthz check passed\n"),
        ("/readyz", 500, "[-]caches failed: broken\n[+]ping ok\nreadyz check failed\n"),
        ("/readyz/ping", 200, "ok"),
        ("/readyz/caches", 500, "[-]caches failed: broken"),
        ("/readyz?exclude=caches", 200, "ok"),
        ("/readyz?exclude=ping", 500, "[-]caches failed: broken\n[+]ping excluded: ok\nreadyz check failed\n"),
        (
            "/readyz?exclude=caches&exclude=ping&verbose=1",
            200,
            "[+]caches excluded: ok\n[+]ping excluded: ok\nreadyz check passed\n",
        ),
        ("/healthz/caches", 404, "no such check"),
        ("/healthz/ping/x", 404, "no such check"),
        ("/", 404, "no such check"),
        ("/metrics", 404, "no such check"),
    ],
)
async def test_probes_should_get_their_answer(port: int, path: str, status: int, text: str) -> None:
    answer = await fetch(port, path)
    assert (answer.status, answer.text) == (status, text)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


async def test_only_those_who_get_good_news_should_keep_their_connection(port: int) -> None:
    answers = [await fetch(port, path) for path in ("/healthz", "/readyz", "/readyz/caches", "/metrics")]
    assert [answer.headers.get("Connection") for answer in answers] == [None, "close", "close", "close"]


async def test_other_methods_should_be_refused(port: int) -> None:
    assert (await fetch(port, "/healthz", method="POST")).status == 405
    assert (await fetch(port, "/healthz", method="HEAD")).status == 200
