from random import Random

import orjson
import pytest

from ktrainer.client.errors import (
    ConnectFailed,
    ConnectionLost,
    CredentialsFailed,
    NotHttp,
    RequestTimeout,
    StreamIdle,
    TransportError,
)
from ktrainer.client.retry import MAX_TRIES, RETRY_AFTER_MAX_SECONDS, Retries, retry_after_of
from ktrainer.kube.errors import error_of


class Highest(Random):
    """Always gives the most jitter."""

    def random(self) -> float:
        return 1.0


def retries(*, repeatable: bool = False, random: Random | None = None) -> Retries:
    return Retries(repeatable=repeatable, random=random or Highest())


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_what_the_server_wants_again_should_be_sent_again(status: int) -> None:
    assert retries().after_answer(error_of(status, b""), 2.0) == pytest.approx(2.2)
    assert retries().after_answer(error_of(status, b""), 0.0) == 0
    assert retries().after_answer(error_of(status, b""), None) is None


@pytest.mark.parametrize("seconds", [61.0, 3600.0, float("inf")])
def test_what_the_server_wants_much_later_should_be_for_the_caller(seconds: float) -> None:
    assert retries(repeatable=True).after_answer(error_of(503, b""), seconds) is None
    assert retries().after_answer(error_of(503, b""), RETRY_AFTER_MAX_SECONDS) == pytest.approx(66)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 409, 410, 422])
def test_other_answers_should_be_for_the_caller(status: int) -> None:
    assert retries(repeatable=True).after_answer(error_of(status, b""), 1.0) is None


def test_a_version_that_the_server_does_not_have_should_not_be_waited_for() -> None:
    causes = {"causes": [{"reason": "ResourceVersionTooLarge"}]}
    body = orjson.dumps({"kind": "Status", "reason": "Timeout", "details": causes})
    assert retries(repeatable=True).after_answer(error_of(504, body), 1.0) is None


def test_a_lost_connection_should_be_repeated_only_where_it_does_no_harm() -> None:
    assert retries(repeatable=True).after_error(ConnectionLost("")) == pytest.approx(1.1)
    assert retries(repeatable=False).after_error(ConnectionLost("")) is None
    assert retries(repeatable=False).after_error(ConnectionLost("", sent=False)) == pytest.approx(1.1)


def test_a_reused_connection_should_be_replaced_at_once_but_once_only() -> None:
    tries = retries(repeatable=True)
    assert tries.after_error(ConnectionLost("", reused=True)) == 0
    assert tries.after_error(ConnectionLost("", reused=True)) == pytest.approx(1.1)
    assert retries(repeatable=False).after_error(ConnectionLost("", reused=True)) is None


@pytest.mark.parametrize(
    "error",
    [ConnectFailed("", refused=True), CredentialsFailed(""), RequestTimeout(""), NotHttp(""), StreamIdle("")],
)
def test_other_failures_should_be_for_the_caller(error: TransportError) -> None:
    assert retries(repeatable=True).after_error(error) is None


def test_no_request_should_be_sent_more_than_ten_times() -> None:
    answers = retries()
    assert [answers.after_answer(error_of(429, b""), 1.0) is None for _ in range(MAX_TRIES)] == [False] * 9 + [True]
    errors = retries(repeatable=True)
    assert [errors.after_error(ConnectionLost("")) is None for _ in range(MAX_TRIES)] == [False] * 9 + [True]


def test_who_has_no_time_should_not_wait_for_long() -> None:
    hurried = Retries(repeatable=True, random=Highest(), max_wait_seconds=1.0)
    assert hurried.after_answer(error_of(429, b""), 1.0) is not None
    assert hurried.after_answer(error_of(429, b""), 2.0) is None


def test_waits_should_differ_but_never_be_shorter() -> None:
    waits = {retries(random=Random(seed)).after_answer(error_of(429, b""), 10.0) or 0.0 for seed in range(50)}
    assert len(waits) == 50
    assert min(waits) >= 10
    assert max(waits) < 11


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("120", 120.0),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("²", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_retry_after_should_be_whole_seconds(value: str, seconds: float | None) -> None:
    assert retry_after_of({"Retry-After": value}) == seconds


def test_retry_after_may_be_missing() -> None:
    assert retry_after_of({}) is None
