import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.aio.bucket import TokenBucket
from support.cases import cases
from support.virtualtime import ManualClock


def test_a_full_bucket_should_let_the_burst_pass_at_once() -> None:
    bucket = TokenBucket(10, 3, ManualClock())
    assert [bucket.reserve() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])


def test_waiting_should_refill_up_to_the_burst_only() -> None:
    clock = ManualClock()
    bucket = TokenBucket(10, 3, clock)
    for _ in range(3):
        bucket.reserve()
    clock.advance(3600)
    assert [bucket.reserve() for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])


def test_a_reservation_that_is_given_back_should_be_had_by_the_next() -> None:
    clock = ManualClock()
    bucket = TokenBucket(10, 1, clock)
    assert [bucket.reserve() for _ in range(3)] == pytest.approx([0, 0.1, 0.2])
    clock.advance(0.05)
    bucket.give_back()
    assert bucket.reserve() == pytest.approx(0.15)


def test_who_does_not_wait_should_only_get_what_is_there() -> None:
    clock = ManualClock()
    bucket = TokenBucket(10, 3, clock)
    assert [bucket.take() for _ in range(5)] == [True, True, True, False, False]
    clock.advance(0.1)
    assert [bucket.take(), bucket.take()] == [True, False], "what was refused cost nothing"


@pytest.mark.parametrize("rate, burst", [(0, 1), (-1, 1), (1, 0)])
def test_a_bucket_that_lets_nobody_pass_should_be_refused(rate: float, burst: int) -> None:
    with pytest.raises(ValueError, match="nobody"):
        TokenBucket(rate, burst, ManualClock())


@settings(max_examples=cases(10_000))
@given(
    rate=st.floats(0.1, 1000),
    burst=st.integers(1, 50),
    pauses=st.lists(st.one_of(st.just(0.0), st.floats(0, 10)), min_size=1, max_size=40),
)
def test_no_span_should_see_more_than_burst_and_rate_allow(rate: float, burst: int, pauses: list[float]) -> None:
    clock = ManualClock()
    bucket = TokenBucket(rate, burst, clock)
    passed_at: list[float] = []
    for pause in pauses:
        clock.advance(pause)
        passed_at.append(clock.monotonic() + bucket.reserve())
    assert passed_at == sorted(passed_at)
    for first, start in enumerate(passed_at):
        for last in range(first, len(passed_at)):
            assert last - first + 1 <= burst + rate * (passed_at[last] - start) + 1e-6


@settings(max_examples=cases(2_000))
@given(rate=st.floats(0.1, 1000), burst=st.integers(1, 50), calls=st.integers(1, 200))
def test_nobody_should_wait_longer_than_needed(rate: float, burst: int, calls: int) -> None:
    bucket = TokenBucket(rate, burst, ManualClock())
    waits = [bucket.reserve() for _ in range(calls)]
    assert waits == pytest.approx([max(0, call + 1 - burst) / rate for call in range(calls)])
