import time
from datetime import UTC, datetime, timedelta

from ktrainer.aio.clock import Clock, SystemClock


def test_system_clock_should_count_suspended_time() -> None:
    clock: Clock = SystemClock()
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= clock.monotonic() <= time.clock_gettime(time.CLOCK_BOOTTIME)


def test_system_clock_should_tell_the_aware_wall_time() -> None:
    clock: Clock = SystemClock()
    before = datetime.now(UTC)
    assert before <= clock.now() <= datetime.now(UTC)
    assert clock.now().utcoffset() == timedelta(0)
