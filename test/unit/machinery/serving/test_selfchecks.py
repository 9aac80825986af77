import asyncio
from dataclasses import dataclass
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from ktrainer.kube.errors import ServiceUnavailable
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.election.election import Election, LeaseSettings
from ktrainer.machinery.election.leader import LeaseElector
from ktrainer.machinery.election.metrics import LeaderMetrics
from ktrainer.machinery.serving.health import Unhealthy
from ktrainer.machinery.serving.selfchecks import DeafnessCheck, check_election_reachable, check_renewal, check_synced
from support.leaseapi import LeaseApi
from support.virtualtime import ManualClock, settle


@dataclass
class Ear:
    """As much of an informer as the check looks at."""

    last_activity_at: float = 0.0
    last_error: str | None = None
    is_absent: bool = False


class Bench:
    """Two informers, and a probe every ten seconds."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.jobs, self.pods = Ear(), Ear()
        self.answered_at: float | None = None
        self.check = DeafnessCheck(lambda: {"jobs": self.jobs, "pods": self.pods}, lambda: self.answered_at, self.clock)

    def live(self, seconds: float, *hearing: Ear, answering: bool = False) -> None:
        """Let time pass; who hears does so all the time."""
        for _ in range(int(seconds / 10)):
            self.clock.advance(10)
            for ear in hearing:
                ear.last_activity_at = self.clock.monotonic()
            if answering:
                self.answered_at = self.clock.monotonic()
            self.check()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_informers_that_hear_should_be_healthy(bench: Bench) -> None:
    bench.live(3600, bench.jobs, bench.pods)


def test_an_informer_that_hears_nothing_while_another_does_should_be_deaf(bench: Bench) -> None:
    bench.live(900, bench.jobs)
    bench.pods.last_error = "403 Forbidden"
    with pytest.raises(Unhealthy, match=r"^pods has heard nothing for 920 s: 403 Forbidden$"):
        bench.live(20, bench.jobs)


def test_informers_that_hear_nothing_while_the_server_answers_others_should_be_deaf(bench: Bench) -> None:
    with pytest.raises(Unhealthy, match=r"jobs has heard .*; pods has heard"):
        bench.live(1000, answering=True)


def test_a_server_that_is_down_should_not_make_us_unhealthy(bench: Bench) -> None:
    bench.live(60, bench.jobs, bench.pods)
    bench.live(36_000)


def test_after_an_outage_every_informer_should_get_its_time_to_come_back(bench: Bench) -> None:
    bench.live(60, bench.jobs, bench.pods)
    bench.live(3600)
    bench.live(890, bench.jobs, answering=True)
    with pytest.raises(Unhealthy, match="pods"):
        bench.live(60, bench.jobs, answering=True)


def test_a_kind_that_the_server_does_not_know_should_not_make_us_unhealthy(bench: Bench) -> None:
    bench.pods.is_absent = True
    bench.live(3600, bench.jobs)


def test_no_informers_should_be_healthy() -> None:
    clock = ManualClock()
    check = DeafnessCheck(dict, lambda: None, clock)
    check()
    clock.advance(3600)
    check()


class Caches:
    def __init__(self, unsynced: dict[str, str]) -> None:
        self._unsynced = unsynced

    def unsynced(self) -> dict[str, str]:
        return self._unsynced


def test_what_has_not_synced_should_be_named_with_its_trouble() -> None:
    check_synced(Caches({}))
    with pytest.raises(Unhealthy, match=r"^jobs has not synced: slow; pods has not synced: 403$"):
        check_synced(Caches({"pods": "403", "jobs": "slow"}))


async def test_the_election_should_be_unhealthy_only_when_a_leader_has_fallen_asleep() -> None:
    clock = ManualClock()
    elector = build_elector(LeaseApi(clock), clock)
    check_renewal(elector)
    task = asyncio.create_task(elector.run(lambda: None))
    await settle()
    clock.advance(35)
    check_renewal(elector)
    clock.advance(1)
    with pytest.raises(Unhealthy, match="renewed 36 s ago"):
        check_renewal(elector)
    task.cancel()
    await asyncio.wait([task])
    check_renewal(elector)


async def test_an_api_server_that_was_never_reached_should_make_us_unready() -> None:
    clock = ManualClock()
    api = LeaseApi(clock)
    api.outage = ServiceUnavailable(503, "", "down")
    elector = build_elector(api, clock)
    with pytest.raises(Unhealthy, match="no answer yet"):
        check_election_reachable(elector)
    task = asyncio.create_task(elector.run(lambda: None))
    await settle()
    with pytest.raises(Unhealthy, match="ServiceUnavailable: 503: down"):
        check_election_reachable(elector)
    api.outage = None
    await asyncio.sleep(5)
    check_election_reachable(elector)
    api.outage = ServiceUnavailable(503, "", "down")
    await asyncio.sleep(5)
    check_election_reachable(elector)
    task.cancel()
    await asyncio.wait([task])


def build_elector(api: LeaseApi, clock: ManualClock) -> LeaseElector:
    return LeaseElector(
        api,
        Election(LeaseSettings(ObjectKey("system", "trainer"), "us"), Random(1)),
        clock=clock,
        metrics=LeaderMetrics(CollectorRegistry(), "trainer"),
        notify=lambda note: None,
    )
