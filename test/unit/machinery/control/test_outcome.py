import pytest

from ktrainer.client.errors import ConnectionLost
from ktrainer.kube.errors import NotFound
from ktrainer.machinery.control.outcome import Ending, failure_of, outcome_of
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
