from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.aio.backoff import Backoff, BackoffPolicy
from support.cases import cases
from support.virtualtime import ManualClock

STEADY = BackoffPolicy(jitter=0.0)


def test_delays_should_double_up_to_the_cap() -> None:
    backoff = Backoff(STEADY, ManualClock(), Random(1))
    assert [backoff.next_delay() for _ in range(8)] == [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0]


def test_reset_should_start_again() -> None:
    backoff = Backoff(STEADY, ManualClock(), Random(1))
    backoff.next_delay()
    backoff.next_delay()
    backoff.reset()
    assert backoff.next_delay() == 0.8


def test_a_quiet_period_should_start_again() -> None:
    clock = ManualClock()
    backoff = Backoff(STEADY, clock, Random(1))
    backoff.next_delay()
    clock.advance(120)
    assert backoff.next_delay() == 1.6
    clock.advance(120.1)
    assert backoff.next_delay() == 0.8


def test_jitter_should_use_the_whole_range() -> None:
    backoff = Backoff(BackoffPolicy(initial_seconds=10, factor=1), ManualClock(), Random(1))
    delays = [backoff.next_delay() for _ in range(1000)]
    assert min(delays) < 10.1
    assert max(delays) > 19.9


@settings(max_examples=cases(2_000))
@given(seed=st.integers(), jitter=st.floats(0, 2), failures=st.integers(1, 60))
def test_every_delay_should_lie_between_the_bare_one_and_its_jitter(seed: int, jitter: float, failures: int) -> None:
    backoff = Backoff(BackoffPolicy(jitter=jitter), ManualClock(), Random(seed))
    for failure in range(failures):
        bare = min(0.8 * 2**failure, 30.0)
        assert bare <= backoff.next_delay() <= bare * (1 + jitter)
