import pytest

from ktrainer.client.errors import ConnectFailed, ConnectionLost, LineTooLong, RequestTimeout, StreamExpired, StreamIdle
from ktrainer.machinery.cache.fifo import Overflow
from ktrainer.machinery.cache.record import RelistReason
from ktrainer.machinery.cache.reflector.endings import (
    SHORT_SECONDS,
    FillStep,
    Step,
    WatchEnd,
    WatchError,
    decide_fill,
    decide_next,
)
from ktrainer.machinery.cache.reflector.events import Undecodable
from support.modelevents import api_error

TOO_LARGE = api_error(504, "Timeout", cause="ResourceVersionTooLarge")


def end(
    error: WatchError | None = None, *, is_open: bool = True, seconds: float = 60.0, lines: int = 3, news: bool = True
) -> WatchEnd:
    return WatchEnd(error, is_open, seconds, lines, bookmarks=0, has_news=news)


@pytest.mark.parametrize(
    "error", [None, ConnectionLost("reset"), RequestTimeout("late"), StreamIdle("silent"), StreamExpired("late")]
)
def test_a_watch_that_ends_in_transport_should_go_on_at_once(error: WatchError | None) -> None:
    assert decide_next(end(error)) is Step.REWATCH
    assert decide_next(end(error, news=False)) is Step.REWATCH
    assert decide_next(end(error, seconds=0.0)) is Step.REWATCH


@pytest.mark.parametrize("error", [None, ConnectionLost("reset")])
def test_a_watch_that_ends_at_once_and_brings_nothing_should_be_suspect(error: WatchError | None) -> None:
    assert decide_next(end(error, seconds=SHORT_SECONDS - 0.01, news=False)) is RelistReason.SHORT_WATCH
    assert decide_next(end(error, seconds=SHORT_SECONDS, news=False)) is Step.REWATCH


@pytest.mark.parametrize(
    "error",
    [
        ConnectFailed("refused", refused=True),
        ConnectFailed("no such host"),
        ConnectionLost("reset"),
        RequestTimeout("late"),
    ],
)
def test_a_watch_that_could_not_begin_should_be_tried_again_later(error: WatchError) -> None:
    assert decide_next(end(error, is_open=False, seconds=0, news=False)) is Step.BACK_OFF


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    ("error", "step"),
    [
        (api_error(410, "Expired"), RelistReason.EXPIRED),
        (api_error(410, "Gone"), RelistReason.EXPIRED),
        (TOO_LARGE, RelistReason.ROLLED_BACK),
        (api_error(429, "TooManyRequests"), Step.BACK_OFF),
        (api_error(401, "Unauthorized"), RelistReason.FAILED),
        (api_error(403, "Forbidden"), RelistReason.FAILED),
        (api_error(404, "NotFound"), RelistReason.FAILED),
        (api_error(500, "InternalError"), RelistReason.FAILED),
        (api_error(503, "ServiceUnavailable"), RelistReason.FAILED),
        (api_error(504, "Timeout"), RelistReason.FAILED),
        (Undecodable("<html>"), RelistReason.UNDECODABLE),
        (LineTooLong("8 MiB"), RelistReason.UNDECODABLE),
        (Overflow("many"), RelistReason.OVERFLOW),
    ],
)
def test_what_the_server_says_should_decide(error: WatchError, step: Step | RelistReason, is_open: bool) -> None:
    assert decide_next(end(error, is_open=is_open)) is step


@pytest.mark.parametrize(
    ("error", "version", "step"),
    [
        pytest.param(None, "5", FillStep.LIST, id="ended too early"),
        pytest.param(ConnectionLost("reset"), "5", FillStep.LIST, id="cut too early"),
        pytest.param(StreamIdle("silent"), "", FillStep.LIST, id="silent"),
        pytest.param(RequestTimeout("late"), "", FillStep.LIST, id="no answer"),
        pytest.param(Undecodable("<html>"), "", FillStep.LIST, id="undecodable"),
        pytest.param(api_error(422, "Invalid"), "", FillStep.LIST, id="no such feature"),
        pytest.param(api_error(500, "InternalError"), "", FillStep.LIST, id="no such feature in the database"),
        pytest.param(api_error(503, "ServiceUnavailable"), "", FillStep.LIST, id="unavailable"),
        pytest.param(api_error(429, "TooManyRequests"), "5", FillStep.BACK_OFF, id="busy"),
        pytest.param(ConnectFailed("refused", refused=True), "5", FillStep.BACK_OFF, id="refused"),
        pytest.param(ConnectFailed("no such host"), "5", FillStep.BACK_OFF, id="unreachable"),
        pytest.param(api_error(410, "Expired"), "5", FillStep.ANY_VERSION, id="expired"),
        pytest.param(TOO_LARGE, "5", FillStep.ANY_VERSION, id="too large"),
        pytest.param(api_error(410, "Expired"), "", FillStep.LIST, id="expired although any version would do"),
        pytest.param(TOO_LARGE, "", FillStep.LIST, id="too large although any version would do"),
        pytest.param(api_error(401, "Unauthorized"), "", FillStep.GIVE_UP, id="unauthorized"),
        pytest.param(api_error(403, "Forbidden"), "", FillStep.GIVE_UP, id="forbidden"),
        pytest.param(api_error(404, "NotFound"), "", FillStep.GIVE_UP, id="no such kind"),
    ],
)
def test_a_stream_that_ends_before_the_state_is_complete_should_be_replaced(
    error: WatchError | None, version: str, step: FillStep
) -> None:
    assert decide_fill(end(error, news=False), version) is step


def test_only_silence_to_the_end_should_count_as_silent() -> None:
    assert end(lines=0).is_silent
    assert end(StreamIdle("silent"), lines=0).is_silent
    assert end(StreamExpired("late"), lines=0).is_silent
    assert not end(StreamIdle("silent"), lines=1).is_silent
    assert not end(ConnectionLost("reset"), lines=0).is_silent
