from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from ktrainer.client.servertime import SAMPLES, ServerTime
from support.virtualtime import EPOCH, ManualClock


class JumpingClock(ManualClock):
    """A clock whose wall time somebody sets."""

    jump = timedelta()

    def now(self) -> datetime:
        return super().now() + self.jump


def observe(time: ServerTime, clock: ManualClock, server_now: datetime, seconds: float = 0.2) -> None:
    """An answer that took some seconds, with a header as of its middle."""
    date = format_datetime((server_now + timedelta(seconds=seconds / 2)).replace(microsecond=0), usegmt=True)
    sent_at = clock.monotonic()
    clock.advance(seconds)
    time.observe(date, sent_at, clock.monotonic())


def error_of(time: ServerTime, server_now: datetime) -> float:
    return abs((time.now() - server_now).total_seconds())


def test_our_own_time_should_do_until_there_is_an_answer() -> None:
    clock = ManualClock()
    time = ServerTime(clock)
    assert time.now() == EPOCH
    time.observe("yesterday", 0, 0)
    time.observe("Mon, 32 Jan 2026 00:00:00 GMT", 0, 0)
    time.observe("Mon, 01 Jan 99999 00:00:00 GMT", 0, 0)
    assert time.now() == EPOCH
    assert time.skew == timedelta()


@pytest.mark.parametrize("skew", [timedelta(0), timedelta(hours=1), timedelta(days=-400)])
def test_the_servers_time_should_be_known_after_one_answer(skew: timedelta) -> None:
    clock = ManualClock()
    time = ServerTime(clock)
    observe(time, clock, clock.now() + skew)
    clock.advance(1000.25)
    assert error_of(time, clock.now() + skew) <= 0.7
    assert abs(time.skew - skew) <= timedelta(seconds=0.7)
    assert time.now().tzinfo is UTC


def test_a_jump_of_our_clock_should_not_matter() -> None:
    clock = JumpingClock()
    time = ServerTime(clock)
    observe(time, clock, EPOCH)
    clock.jump = timedelta(hours=1)
    assert error_of(time, EPOCH + timedelta(seconds=clock.monotonic())) <= 0.7


def test_single_wrong_answers_should_be_outvoted() -> None:
    clock = ManualClock()
    time = ServerTime(clock)
    for number in range(31):
        wrong = timedelta(hours=5) if number % 3 == 0 else timedelta()
        observe(time, clock, EPOCH + timedelta(seconds=clock.monotonic()) + wrong)
        clock.advance(2)
    assert error_of(time, EPOCH + timedelta(seconds=clock.monotonic())) <= 0.7


def test_a_change_of_the_servers_clock_should_be_followed() -> None:
    clock = ManualClock()
    time = ServerTime(clock)
    for _ in range(SAMPLES):
        observe(time, clock, clock.now())
        clock.advance(2)
    for _ in range(SAMPLES // 2 + 1):
        observe(time, clock, clock.now() + timedelta(minutes=5))
        clock.advance(2)
    assert error_of(time, clock.now() + timedelta(minutes=5)) <= 0.7


def test_many_answers_in_one_second_should_count_as_one() -> None:
    clock = ManualClock()
    time = ServerTime(clock)
    date = format_datetime(EPOCH, usegmt=True)
    time.observe(date, 0, 0)
    before = time.now()
    for _ in range(100):
        time.observe(date, 500, 500)
    assert time.now() == before
