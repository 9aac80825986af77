"""The figures of controllers, leader election, manager and servers, in one table, so that every change shows."""

import inspect
from random import Random

import pytest
from aiohttp.web_protocol import RequestHandler

from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery import manager
from ktrainer.machinery.control import controller
from ktrainer.machinery.control import metrics as controllermetrics
from ktrainer.machinery.election import election, lease
from ktrainer.machinery.serving import connections, health, httpserver, looplag, reviews, scrapeauth, selfchecks

SETTINGS = election.LeaseSettings(ObjectKey("system", "trainer"), "us")
TIMES = SETTINGS.times
CONTROLLER = controller.ControllerSettings("test")


def shortest_and_longest_acquire_delay() -> tuple[float, float]:
    class Dice(Random):
        def __init__(self, value: float) -> None:
            super().__init__()
            self.value = value

        def random(self) -> float:
            return self.value

    shortest, longest = (election.Election(SETTINGS, Dice(value)).acquire_delay(0) for value in (0.0, 1.0))
    return shortest, longest


@pytest.mark.parametrize(
    "figure, expected",
    [
        pytest.param(CONTROLLER.workers, 1, id="C1 workers"),
        pytest.param(CONTROLLER.timeout_seconds, 60, id="C5 reconcile timeout"),
        pytest.param(controller.STALE_SECONDS, 0.2, id="R32 stale retry"),
        pytest.param(controller.STALE_CAP_SECONDS, 5, id="R32 longest stale retry"),
        pytest.param(len(controllermetrics.BUCKETS), 40, id="C7 buckets"),
        pytest.param(controllermetrics.BUCKETS[0], 0.005, id="C7 first bucket"),
        pytest.param(controllermetrics.BUCKETS[-1], 60, id="C7 last bucket"),
        pytest.param(TIMES.lease_seconds, 15, id="L2 lease duration"),
        pytest.param(TIMES.renew_deadline_seconds, 10, id="L2 renew deadline"),
        pytest.param(TIMES.retry_seconds, 2, id="L2 retry period"),
        pytest.param(shortest_and_longest_acquire_delay(), (2, 4.4), id="L3 acquire delay"),
        pytest.param(election.EXPIRY_JITTER_SECONDS, 0.1, id="L16 look after expiry"),
        pytest.param(TIMES.request_seconds, 5, id="L6 request timeout"),
        pytest.param(lease.RELEASED_SECONDS, 1, id="L8 duration of a released lease"),
        pytest.param(selfchecks.RENEWAL_TOLERANCE_SECONDS, 20, id="L11 tolerance"),
        pytest.param(manager.GRACE_SECONDS, 30, id="M4 grace"),
        pytest.param(manager.LEADER_SHARE, 2 / 3, id="M4 share of leader-only work"),
        pytest.param(manager.LOST_SECONDS, 1, id="L9 end after loss"),
        pytest.param(health.CHECK_SECONDS, 10, id="M7 check timeout"),
        pytest.param(looplag.LIMIT_SECONDS, 10, id="M8 lag limit"),
        pytest.param(looplag.HANG_SECONDS, 60, id="M8 hang limit"),
        pytest.param(selfchecks.DEAF_SECONDS, 900, id="M8 deaf informer"),
        pytest.param(selfchecks.SILENCE_SECONDS, 120, id="M8 silent API server"),
        pytest.param(connections.HEADER_SECONDS, 32, id="M9 header read"),
        pytest.param(connections.KEEPALIVE_SECONDS, 120, id="M9, W9 idle connection"),
        pytest.param(httpserver.IN_FLIGHT_SECONDS, 5, id="M9 in flight at stop"),
        pytest.param(reviews.TOKEN_SECONDS, 60, id="S3 token memory"),
        pytest.param(scrapeauth.ALLOW_SECONDS, 300, id="S3 allow memory"),
        pytest.param(scrapeauth.DENY_SECONDS, 30, id="S3 deny memory"),
        pytest.param(reviews.REVIEW_SECONDS, 10, id="S3 review timeout"),
        pytest.param(reviews.TRIES, 5, id="S3 tries"),
        pytest.param(reviews.RETRIES.initial_seconds, 0.5, id="S3 first retry"),
        pytest.param(reviews.RETRIES.factor, 1.5, id="S3 factor"),
        pytest.param(reviews.RETRIES.jitter, 0.2, id="S3 jitter"),
    ],
)
def test_figures_should_be_as_agreed(figure: object, expected: object) -> None:
    assert figure == pytest.approx(expected)


def test_aiohttp_should_limit_the_size_of_heads() -> None:
    parameters = inspect.signature(RequestHandler).parameters
    assert parameters["max_headers"].default * parameters["max_field_size"].default < 1024**2
