from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ktrainer.machinery.queue.ratelimiter import CAP_SECONDS, JITTER, ExponentialLimiter
from support.cases import cases


def test_delays_should_double_up_to_the_cap() -> None:
    limiter = ExponentialLimiter[str](Random(1))
    delays = [limiter.when("a") for _ in range(20)]
    bare = [min(0.005 * 2**failure, 300) for failure in range(20)]
    assert delays == pytest.approx(bare, rel=JITTER)
    assert delays != pytest.approx(bare, rel=JITTER / 10)


def test_forget_should_reset_one_key_only() -> None:
    limiter = ExponentialLimiter[str](Random(1))
    for key in ("a", "b"):
        limiter.when(key)
        limiter.when(key)
    limiter.forget("a")
    limiter.forget("never seen")
    assert (limiter.num_requeues("a"), limiter.num_requeues("b")) == (0, 2)
    assert limiter.when("a") == pytest.approx(0.005, rel=JITTER)
    assert limiter.when("b") == pytest.approx(0.02, rel=JITTER)


def test_very_many_failures_should_not_overflow() -> None:
    limiter = ExponentialLimiter[str](Random(1))
    assert [limiter.when("a") for _ in range(3000)][-1] == pytest.approx(300, rel=JITTER)
    assert limiter.num_requeues("a") == 3000


@settings(max_examples=cases(10_000))
@given(seed=st.integers(), failures=st.lists(st.sampled_from("abc"), max_size=80), forgotten=st.sampled_from("abc"))
def test_delays_should_grow_stay_capped_and_start_again(seed: int, failures: list[str], forgotten: str) -> None:
    limiter = ExponentialLimiter[str](Random(seed))
    last = dict.fromkeys("abc", 0.0)
    for key in failures:
        delay = limiter.when(key)
        assert last[key] < delay or last[key] >= CAP_SECONDS * (1 - JITTER)
        assert 0 < delay <= CAP_SECONDS * (1 + JITTER)
        last[key] = delay
    assert {key: limiter.num_requeues(key) for key in "abc"} == {key: failures.count(key) for key in "abc"}
    limiter.forget(forgotten)
    assert limiter.when(forgotten) <= 0.005 * (1 + JITTER)
