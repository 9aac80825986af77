import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from ktrainer.kube.errors import Conflict, InternalError, NotFound, ServiceUnavailable
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.election.election import Election, LeaseSettings
from ktrainer.machinery.election.leader import LeaseElector, LeaseLost, NotLeading, build_identity
from ktrainer.machinery.election.metrics import LeaderMetrics
from support.leaseapi import HANG, LeaseApi
from support.virtualtime import ManualClock, VirtualClock, settle

KEY = ObjectKey("system", "trainer")


class Process:
    """One candidate with its metrics, events and clock."""

    def __init__(self, api: LeaseApi, clock: Any, identity: str = "us") -> None:
        self.registry = CollectorRegistry()
        self.events: list[str] = []
        self.started_at: float | None = None
        self._clock = clock
        self.elector = LeaseElector(
            api,
            Election(LeaseSettings(KEY, identity), Random(7)),
            clock=clock,
            metrics=LeaderMetrics(self.registry, "trainer"),
            notify=self.events.append,
        )

    async def run(self) -> None:
        await self.elector.run(self._started)

    def has_started(self) -> bool:
        return self.started_at is not None

    def answered_at(self) -> float | None:
        return self.elector.answered_at

    def trouble(self) -> str | None:
        return self.elector.last_error

    def leads(self) -> bool:
        return self.elector.is_leading

    def _started(self) -> None:
        self.elector.fence()
        self.started_at = self._clock.monotonic()

    def metric(self, name: str) -> float | None:
        return self.registry.get_sample_value(name, {"name": "trainer"})

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[asyncio.Task[None]]:
        task = asyncio.create_task(self.run())
        try:
            yield task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, LeaseLost):
                await task

    @contextlib.asynccontextmanager
    async def leading(self) -> AsyncIterator[asyncio.Task[None]]:
        async with self.running() as task:
            await settle()
            assert self.leads()
            yield task


@pytest.fixture
def api(virtual_clock: VirtualClock) -> LeaseApi:
    return LeaseApi(virtual_clock)


@pytest.fixture
def process(api: LeaseApi, virtual_clock: VirtualClock) -> Process:
    return Process(api, virtual_clock)


async def test_the_first_candidate_should_lead_at_once(process: Process, api: LeaseApi) -> None:
    assert process.metric("leader_election_master_status") == 0
    async with process.leading():
        assert process.started_at == 0
        assert process.metric("leader_election_master_status") == 1
        assert process.events == ["us became leader"]
        assert api.spec["holderIdentity"] == "us"
        assert api.spec["leaseDurationSeconds"] == 15


async def test_a_leader_should_renew_every_two_seconds_with_one_request(process: Process, api: LeaseApi) -> None:
    async with process.leading():
        await asyncio.sleep(7)
        assert api.calls == [(0, "get"), (0, "create"), (2, "update"), (4, "update"), (6, "update")]
        assert api.spec["leaseTransitions"] == 0
        assert process.metric("leader_election_slowpath_total") == 0


async def test_the_fence_should_be_closed_before_leading(process: Process) -> None:
    with pytest.raises(NotLeading, match="does not lead"):
        process.elector.fence()


async def test_the_fence_should_count_from_when_the_renewal_was_sent(api: LeaseApi) -> None:
    clock = ManualClock()
    process = Process(api, clock)
    async with process.leading():
        clock.advance(9.9)
        process.elector.fence()
        clock.advance(0.1)
        with pytest.raises(NotLeading, match=r"renewed 10\.0 s ago"):
            process.elector.fence()


async def test_a_foreign_lease_should_be_waited_for_by_our_own_clock(
    process: Process, api: LeaseApi, virtual_clock: VirtualClock
) -> None:
    api.write(holderIdentity="other", leaseDurationSeconds=15, renewTime="2001-01-01T00:00:00.000000Z")
    async with process.running():
        await asyncio.sleep(14.9)
        assert not process.has_started()
        await asyncio.sleep(0.3)
        assert process.started_at is not None
        assert 15 <= process.started_at < 15.1
        assert api.spec["leaseTransitions"] == 1


async def test_a_lease_that_is_renewed_should_never_be_taken(process: Process, api: LeaseApi) -> None:
    async with process.running():
        for second in range(0, 60, 5):
            api.write(holderIdentity="other", leaseDurationSeconds=15, renewTime=str(second))
            await asyncio.sleep(5)
        assert process.started_at is None


async def test_a_lease_that_was_given_back_should_be_taken_at_the_next_look(process: Process, api: LeaseApi) -> None:
    api.write(holderIdentity="other", leaseDurationSeconds=15)
    async with process.running():
        await asyncio.sleep(5)
        api.write(holderIdentity="", leaseDurationSeconds=1)
        await asyncio.sleep(4.4)
        assert process.leads()


async def test_cancelling_the_leader_should_close_the_fence_and_give_the_lease_back(
    process: Process, api: LeaseApi
) -> None:
    async with process.leading() as task:
        api.write(renewTime="edited meanwhile")
        task.cancel()
        await asyncio.sleep(0)
        assert not process.leads()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (api.spec["holderIdentity"], api.spec["leaseDurationSeconds"]) == ("", 1)
    assert process.events == ["us became leader", "us stopped leading"]
    assert process.metric("leader_election_master_status") == 0


async def test_giving_back_should_try_again_after_a_conflict(process: Process, api: LeaseApi) -> None:
    async with process.leading() as task:
        api.faults = [None, Conflict(409, "Conflict", "somebody was faster")]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert api.spec["holderIdentity"] == ""


async def test_giving_back_should_not_race_with_others_for_ever(
    process: Process, api: LeaseApi, virtual_clock: VirtualClock
) -> None:
    async with process.leading() as task:
        api.latency_seconds = 0.1
        api.outage = lambda: api.write(renewTime=str(virtual_clock.monotonic()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert virtual_clock.monotonic() == pytest.approx(10)


@pytest.mark.parametrize("fault", [HANG, InternalError(500, "InternalError", "broken"), b"<html>"])
async def test_giving_back_should_not_hold_up_the_end(
    process: Process, api: LeaseApi, virtual_clock: VirtualClock, fault: Any
) -> None:
    async with process.leading() as task:
        api.outage = fault
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert virtual_clock.monotonic() <= 5


async def test_a_lease_that_another_holds_should_not_be_given_back(process: Process, api: LeaseApi) -> None:
    async with process.leading() as task:
        api.write(holderIdentity="thief")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert api.spec["holderIdentity"] == "thief"


async def test_a_candidate_should_go_without_a_word(process: Process, api: LeaseApi) -> None:
    api.write(holderIdentity="other", leaseDurationSeconds=15)
    async with process.running() as task:
        await settle()
        calls = len(api.calls)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert len(api.calls) == calls
    assert process.events == []


async def test_a_candidate_whose_claim_is_under_way_should_give_it_back(process: Process, api: LeaseApi) -> None:
    api.commits_before_fault = True
    api.faults = [None, HANG]
    async with process.running() as task:
        await asyncio.sleep(1)
        assert api.spec["holderIdentity"] == "us"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert api.spec["holderIdentity"] == ""


async def test_an_outage_should_end_leading_at_the_renew_deadline(
    process: Process, api: LeaseApi, virtual_clock: VirtualClock
) -> None:
    async with process.leading() as task:
        await asyncio.sleep(3)
        api.outage = ServiceUnavailable(503, "", "down")
        with pytest.raises(LeaseLost, match="not renewed in time: ServiceUnavailable: 503: down"):
            await task
        assert virtual_clock.monotonic() == 12
    assert process.metric("ktrainer_leader_election_reachable") == 0
    assert process.events == ["us became leader", "us stopped leading"]
    assert process.metric("leader_election_master_status") == 0


async def test_requests_that_hang_should_end_leading_at_the_renew_deadline(
    process: Process, api: LeaseApi, virtual_clock: VirtualClock
) -> None:
    async with process.leading() as task:
        api.outage = HANG
        with pytest.raises(LeaseLost, match="not renewed in time"):
            await task
        assert virtual_clock.monotonic() == 10
        assert api.calls[2:] == [(2, "update"), (7, "get")]


async def test_one_request_that_hangs_should_not_cost_the_lease(process: Process, api: LeaseApi) -> None:
    async with process.leading():
        api.faults = [HANG]
        await asyncio.sleep(30)
        assert process.leads()
        assert api.calls[2:6] == [(2, "update"), (7, "get"), (7, "update"), (9, "update")]
        assert process.metric("leader_election_slowpath_total") == 1


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(b"", id="empty body"),
        pytest.param(b"<html>bad gateway</html>", id="HTML"),
        pytest.param(b'{"kind": "Lease"', id="cut off"),
        pytest.param(b'{"kind": "Lease", "metadata": {"resourceVersion": "9"}}', id="a lease that is not ours"),
        pytest.param(NotFound(404, "", "<html>"), id="a proxy's 404"),
        pytest.param(OSError("reset"), id="connection reset"),
        pytest.param(KeyError("bug"), id="a bug of ours"),
        pytest.param(asyncio.CancelledError(), id="something that others cancelled"),
    ],
)
async def test_any_failure_should_be_just_an_attempt(process: Process, api: LeaseApi, fault: Any) -> None:
    api.faults = [fault, fault]
    async with process.running():
        await settle()
        assert process.trouble() is not None
        assert process.answered_at() is None
        assert process.metric("ktrainer_leader_election_reachable") == 0
        await asyncio.sleep(10)
        assert process.leads()
        assert process.trouble() is None
        assert process.answered_at() == pytest.approx(api.calls[-1][0], abs=0.001)
        assert process.metric("ktrainer_leader_election_reachable") == 1
        api.faults = [fault]
        await asyncio.sleep(10)
        assert process.leads()
        assert process.metric("leader_election_slowpath_total") == 1


async def test_a_leader_should_not_believe_a_proxy_that_the_lease_is_gone(process: Process, api: LeaseApi) -> None:
    async with process.leading():
        api.faults = [OSError("reset"), NotFound(404, "", "<html>not here</html>")]
        await asyncio.sleep(5)
        assert process.leads()


async def test_a_renewal_whose_answer_was_lost_should_be_repeated(process: Process, api: LeaseApi) -> None:
    async with process.leading():
        api.commits_before_fault = True
        api.faults = [OSError("reset")]
        await asyncio.sleep(2)
        await settle()
        assert [verb for _, verb in api.calls] == ["get", "create", "update", "get", "update"]
        assert process.elector.renewal_age_seconds == 0


@pytest.mark.parametrize(
    "record",
    [
        pytest.param({"holderIdentity": "thief"}, id="stolen"),
        pytest.param({"holderIdentity": ""}, id="emptied"),
        pytest.param({"holderIdentity": 5}, id="garbage"),
    ],
)
async def test_a_lease_that_is_not_ours_any_more_should_end_leading_at_once(
    process: Process, api: LeaseApi, virtual_clock: VirtualClock, record: dict[str, Any]
) -> None:
    async with process.leading() as task:
        api.write(**record)
        with pytest.raises(LeaseLost, match=r"the lease is (held by|free)"):
            await task
        assert virtual_clock.monotonic() == 2
        assert not process.leads()
    assert api.spec["holderIdentity"] == record["holderIdentity"]


async def test_a_lease_that_is_gone_should_end_leading_at_once(
    process: Process, api: LeaseApi, virtual_clock: VirtualClock
) -> None:
    async with process.leading() as task:
        api.server.document = None
        with pytest.raises(LeaseLost, match="the lease is absent"):
            await task
        assert virtual_clock.monotonic() == 2
    assert api.server.document is None


async def test_an_edit_that_leaves_us_the_holder_should_be_written_over(process: Process, api: LeaseApi) -> None:
    async with process.leading():
        api.write(leaseDurationSeconds=3600, leaseTransitions=-4)
        await asyncio.sleep(2.1)
        assert api.spec["leaseDurationSeconds"] == 15
        assert api.spec["leaseTransitions"] == 0
        assert process.leads()


async def test_garbage_should_be_reported_once_and_taken_over_after_a_lease_duration(
    process: Process, api: LeaseApi
) -> None:
    api.write(holderIdentity={"a": 1}, leaseDurationSeconds="fifteen")
    with capture_logs() as logs:
        async with process.running():
            await asyncio.sleep(14)
            assert not process.leads()
            await asyncio.sleep(2)
            assert process.leads()
    (report,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert report["problems"] == ("holderIdentity is {'a': 1}", "leaseDurationSeconds is 'fifteen'")


@pytest.mark.parametrize("stood_still, survives", [(3, True), (12, False)])
async def test_a_process_that_stood_still_past_the_deadline_should_not_go_on(
    api: LeaseApi, stood_still: float, survives: bool
) -> None:
    clock = ManualClock()
    process = Process(api, clock)
    async with process.leading() as task:
        clock.advance(stood_still)
        assert process.leads() is survives
        await asyncio.sleep(2)
        await settle()
        assert task.done() is not survives
        if not survives:
            with pytest.raises(LeaseLost, match="stood still"):
                await task
            assert [verb for _, verb in api.calls] == ["get", "create"]


async def test_a_claim_that_was_answered_too_late_should_not_start_anything(api: LeaseApi) -> None:
    clock = ManualClock()
    process = Process(api, clock)
    api.faults = [None, lambda: clock.advance(60)]
    async with process.running():
        await settle()
        assert not process.has_started()
        await asyncio.sleep(5)
        assert process.has_started()


async def test_two_candidates_should_agree(api: LeaseApi, virtual_clock: VirtualClock) -> None:
    one, two = Process(api, virtual_clock, "one"), Process(api, virtual_clock, "two")
    async with one.running() as first, two.running():
        await asyncio.sleep(30)
        assert (one.leads(), two.leads()) == (True, False)
        first.cancel()
        await asyncio.sleep(4.5)
        assert (one.leads(), two.leads()) == (False, True)


def test_identities_should_be_unique() -> None:
    first, second = build_identity("host"), build_identity("host")
    assert first.startswith("host_")
    assert first != second
