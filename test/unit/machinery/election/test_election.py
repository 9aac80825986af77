from random import Random
from typing import Any

import orjson
import pytest

from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.election.election import EXPIRY_JITTER_SECONDS, Election, LeaseSettings, LeaseTimes
from ktrainer.machinery.election.lease import Lease, parse_lease

KEY = ObjectKey("system", "trainer")


def lease(holder: Any, version: int = 1, **spec: Any) -> Lease:
    metadata = {"resourceVersion": str(version)}
    return parse_lease(orjson.dumps({"kind": "Lease", "metadata": metadata, "spec": {"holderIdentity": holder} | spec}))


@pytest.fixture
def election() -> Election:
    return Election(LeaseSettings(KEY, "us"), Random(1))


@pytest.mark.parametrize(
    "figures, message",
    [
        ({"retry_seconds": 0.0}, "retry period must be positive"),
        ({"retry_seconds": -1.0}, "retry period must be positive"),
        ({"renew_deadline_seconds": 2.4}, "more than 1.2 times"),
        ({"lease_seconds": 10}, "longer than the renew deadline"),
    ],
)
def test_times_that_are_unsafe_should_be_refused(figures: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LeaseTimes(**figures)


def test_a_candidate_without_identity_should_be_refused() -> None:
    with pytest.raises(ValueError, match="needs an identity"):
        LeaseSettings(KEY, "")


@pytest.mark.parametrize("deadline, seconds", [(10.0, 5.0), (1.5, 1.0)])
def test_a_request_should_take_half_the_deadline_but_at_least_a_second(deadline: float, seconds: float) -> None:
    times = LeaseTimes(15, renew_deadline_seconds=deadline, retry_seconds=0.5)
    assert times.request_seconds == seconds


def test_nobody_should_lead_who_has_not_won(election: Election) -> None:
    election.observe(lease("us"), 0)
    assert election.leads_for(0) == 0


def test_leading_should_count_from_when_the_claim_was_sent(election: Election) -> None:
    election.won(lease("us"), sent_at=100, now=104)
    assert election.leads_for(104) == 6
    assert election.leads_for(109.9) == pytest.approx(0.1)
    assert election.leads_for(110) == 0
    election.won(lease("us", 2), sent_at=109, now=109.5)
    assert election.leads_for(110) == 9


def test_an_answer_after_the_deadline_should_make_nobody_the_leader(election: Election) -> None:
    election.won(lease("us"), sent_at=100, now=110)
    assert election.renewed_at is None
    assert election.is_ours


def test_who_resigned_should_not_lead(election: Election) -> None:
    election.won(lease("us"), sent_at=0, now=0)
    election.resign()
    assert election.leads_for(0) == 0


def test_a_foreign_lease_should_be_valid_from_when_its_record_was_first_seen(election: Election) -> None:
    election.observe(lease("a", leaseDurationSeconds=20, renewTime="1"), 100)
    election.observe(lease("a", 2, leaseDurationSeconds=20, renewTime="1"), 110)
    assert election.held_for(110) == 10
    election.observe(lease("a", 3, leaseDurationSeconds=20, renewTime="2"), 115)
    assert election.held_for(115) == 20
    assert election.held_for(135) == 0


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(lease("a"), id="no duration"),
        pytest.param(lease("a", leaseDurationSeconds="long"), id="unintelligible duration"),
        pytest.param(lease(5), id="unintelligible holder"),
    ],
)
def test_a_record_that_cannot_be_understood_should_be_honoured_for_our_own_duration(
    election: Election, record: Lease
) -> None:
    election.observe(record, 100)
    assert election.held_for(100) == 15
    assert election.held_for(115) == 0


def test_a_lease_that_is_free_absent_or_ours_may_be_claimed(election: Election) -> None:
    assert election.held_for(0) == 0
    for each in (lease("", leaseDurationSeconds=15), lease("us", leaseDurationSeconds=15)):
        election.observe(each, 0)
        assert election.held_for(0) == 0
    election.observe(lease("a"), 0)
    election.observe_absence()
    assert election.held_for(0) == 0


def test_candidates_should_wait_between_one_and_2_2_retry_periods(election: Election) -> None:
    delays = [election.acquire_delay(0) for _ in range(1000)]
    assert 2 <= min(delays) < 2.05
    assert 4.35 < max(delays) < 4.4


def test_a_candidate_should_look_again_as_soon_as_the_lease_it_waits_for_expires(election: Election) -> None:
    election.observe(lease("a", leaseDurationSeconds=15), 0)
    for _ in range(100):
        assert 2 <= election.acquire_delay(5) < 4.4
        assert 1 <= election.acquire_delay(14) < 1 + EXPIRY_JITTER_SECONDS
