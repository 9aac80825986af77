import itertools
import logging
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cases import IS_FULL, cases
from support.electionsim import Fault, Schedule, Weather, World

pytestmark = pytest.mark.timeout(1800)

CALM_SECONDS = 25.0
"""Within this time after the last fault somebody must lead."""

SHARES = st.sampled_from([0.0, 0.05, 0.2, 0.5])

WEATHERS = st.builds(
    Weather, lost=SHARES, doubled=SHARES, slow=SHARES, slow_seconds=st.sampled_from([1.0, 4.9, 9.0, 30.0])
)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    calm_at = draw(st.floats(1, 60))
    rates = draw(st.lists(st.floats(0.99, 1.01), min_size=2, max_size=5))
    fault = st.builds(
        Fault,
        kind=st.sampled_from(["pause", "partition", "crash", "stop"]),
        node=st.integers(0, len(rates) - 1),
        at=st.floats(0, calm_at, exclude_max=True),
        seconds=st.floats(0.1, 60),
    )
    return Schedule(
        rates=tuple(rates),
        weather=draw(WEATHERS),
        faults=tuple(draw(st.lists(fault, max_size=8))),
        calm_at=calm_at,
        seed=draw(st.integers(0, 2**32)),
    )


@pytest.fixture(autouse=True, scope="module")
def _quiet() -> Iterator[None]:
    # Failed attempts are what these tests are made of; telling each of them would take most of the time.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


def tell(schedule: Schedule) -> float:
    """Play the story; return how long after the faults somebody leads."""
    world = World(schedule)
    for _ in world.run_until(schedule.calm_at):
        pass
    for _ in world.run_until(schedule.calm_at + CALM_SECONDS):
        if world.leader() is not None:
            return world.now - schedule.calm_at
    pytest.fail(f"nobody leads {CALM_SECONDS} s after the last fault")


@settings(max_examples=cases(20_000))
@given(schedules())
def test_no_two_processes_should_pass_the_fence_at_one_instant_and_somebody_should_lead_soon(
    schedule: Schedule,
) -> None:
    tell(schedule)


FATES = ("quick", "lost", "late")
DEPTH = 7 if IS_FULL else 4


@pytest.mark.parametrize(
    "fates_at, faults",
    [
        pytest.param(0.0, (), id="all fates of the first messages"),
        pytest.param(10.0, (Fault("pause", 0, 10.0, 18.0),), id="all fates while the leader is paused"),
        pytest.param(10.0, (Fault("stop", 0, 10.0, 1.0),), id="all fates while the leader gives the lease back"),
    ],
)
def test_every_combination_of_few_fates_should_be_safe(fates_at: float, faults: tuple[Fault, ...]) -> None:
    for fates in itertools.product(FATES, repeat=DEPTH):
        tell(Schedule(rates=(0.99, 1.01), faults=faults, calm_at=40.0, fates=fates, fates_at=fates_at))


def test_a_quiet_world_should_keep_its_leader() -> None:
    world = World(Schedule(rates=(1.0, 1.0, 1.0), calm_at=0.0))
    for _ in world.run_until(10):
        pass
    leader = world.leader()
    assert leader is not None
    for _ in world.run_until(600):
        assert world.leader() == leader
    document = world.server.document
    assert document is not None
    assert document["spec"]["leaseTransitions"] == 0
