import pytest

from ktrainer.client.errors import ConnectionLost
from ktrainer.kube.errors import NotFound, TooManyRequests
from ktrainer.machinery.control.outcome import NOT_BEFORE_MAX_SECONDS, Ending, failure_of, outcome_of
from ktrainer.machinery.control.reconcile import Result, RetryableError, Stale, TerminalError
from ktrainer.machinery.election.leader import NotLeading

API_ERROR = NotFound(404, "NotFound", "gone")


@pytest.mark.parametrize(
    "result, ending",
    [
        (Result(), Ending.SUCCESS),
        (Result(requeue_after=0), Ending.SUCCESS),
        (Result(requeue_after=-1), Ending.SUCCESS),
        (Result(requeue_after=5), Ending.REQUEUE_AFTER),
    ],
)
def test_a_result_should_ask_for_another_turn_only_with_a_time_to_come(result: Result, ending: Ending) -> None:
    assert outcome_of(result).ending is ending


def test_a_result_should_keep_its_wishes() -> None:
    outcome = outcome_of(Result(requeue_after=5, priority=3))
    assert (outcome.requeue_after, outcome.priority) == (5, 3)


@pytest.mark.parametrize(
    "error, ending",
    [
        (API_ERROR, Ending.ERROR),
        (ConnectionLost("reset"), Ending.ERROR),
        (RetryableError("not yet"), Ending.ERROR),
        (NotLeading("lost"), Ending.ERROR),
        (Stale("behind"), Ending.STALE),
        (TerminalError("never"), Ending.TERMINAL),
        (KeyError("bug"), Ending.PANIC),
        (RecursionError(), Ending.PANIC),
        (MemoryError(), Ending.PANIC),
        (TimeoutError(), Ending.PANIC),
        (ExceptionGroup("", [API_ERROR, RetryableError("x")]), Ending.ERROR),
        (ExceptionGroup("", [API_ERROR, TerminalError("x")]), Ending.ERROR),
        (ExceptionGroup("", [API_ERROR, Stale("x")]), Ending.ERROR),
        (ExceptionGroup("", [API_ERROR, ExceptionGroup("", [KeyError("bug")])]), Ending.PANIC),
        (ExceptionGroup("", [TerminalError("x"), ExceptionGroup("", [TerminalError("y")])]), Ending.TERMINAL),
        (ExceptionGroup("", [Stale("x"), Stale("y")]), Ending.STALE),
    ],
    ids=repr,
)
def test_an_error_should_be_told_by_its_kind(error: Exception, ending: Ending) -> None:
    assert failure_of(error, timed_out=False).ending is ending


@pytest.mark.parametrize("error", [TimeoutError(), KeyError("while cleaning up")])
def test_whatever_comes_of_a_timeout_should_be_a_timeout(error: Exception) -> None:
    assert failure_of(error, timed_out=True).ending is Ending.TIMEOUT


@pytest.mark.parametrize(
    "limits, requeue_after",
    [((None, None), None), ((7.0, None), 7.0), ((7.0, 3.0), 3.0), ((0.0, 3.0), 3.0), ((-1.0, None), None)],
)
def test_the_earliest_time_to_come_should_count(limits: tuple[float | None, ...], requeue_after: float | None) -> None:
    errors = [RetryableError("x", requeue_after=limit) for limit in limits]
    assert failure_of(ExceptionGroup("", errors), timed_out=False).requeue_after == requeue_after


def shed(seconds: float | None) -> TooManyRequests:
    return TooManyRequests(429, "TooManyRequests", "slow down", retry_after=seconds)


def wrapped(cause: Exception) -> RetryableError:
    error = RetryableError("could not apply")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "not_before"),
    [
        (shed(120), 120.0),
        (shed(None), 0.0),
        (wrapped(shed(120)), 120.0),
        (wrapped(wrapped(shed(120))), 120.0),
        (wrapped(ExceptionGroup("", [shed(20), wrapped(shed(30))])), 30.0),
        (ExceptionGroup("", [shed(20), RetryableError("x"), wrapped(shed(30))]), 30.0),
        (shed(3600), NOT_BEFORE_MAX_SECONDS),
        (RetryableError("x", requeue_after=7), 0.0),
    ],
    ids=repr,
)
def test_the_longest_wait_that_the_server_asks_for_should_count(error: Exception, not_before: float) -> None:
    assert failure_of(error, timed_out=False).not_before == not_before


def test_a_chain_of_causes_that_bites_its_tail_should_have_an_end() -> None:
    error, other = wrapped(shed(5)), shed(10)
    assert error.__cause__ is not None
    error.__cause__.__cause__ = other
    other.__cause__ = error
    assert failure_of(error, timed_out=False).not_before == 10
