"""Stopping a process: in an orderly manner, at once, before it leads, and before it knows anything."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from clusters.api import Api
from clusters.folder import Folder
from support.copies import Copies, churning, eventually, holder_of
from support.faultproxy.proxy import FaultProxy
from support.figures import Figures, scaled
from support.observer import until
from support.replica import Replica, Settings, running
from support.trail import Trail

LEASE = "copier"


@pytest.fixture
def copies(cluster: Folder, namespace: str) -> Iterator[Copies]:
    with closing(Copies(cluster.kubeconfig("admin"), namespace)) as opened:
        yield opened


async def test_T36_a_leader_under_load_should_finish_its_turns_and_give_the_lease_back(
    cluster: Folder, admin: Api, namespace: str, copies: Copies, tmp_path: Path, figures: Figures
) -> None:
    kubeconfig = cluster.kubeconfig("admin")
    names = [f"source-{number}" for number in range(20)]
    await asyncio.to_thread(copies.add, *names)
    settings = Settings(kubeconfig, namespace, lease=LEASE, workers=4, delay=0.5)
    slowest = 0.0
    for _ in range(scaled(1, 20)):
        replica = Replica(settings, tmp_path, "one")
        trail = Trail(cluster, namespace)
        async with churning(kubeconfig, namespace, names, per_second=20), running(replica):
            await eventually(lambda: len(trail.writes(agent=replica.agent)) >= 10, 60, "it works")  # noqa: B023
            replica.terminate()
            code, seconds = await replica.exit_code(60)
        slowest = max(slowest, seconds)
        assert code == 0, replica.tail()
        assert await asyncio.to_thread(holder_of, admin, namespace, LEASE) == ""
        events = [each["event"] for each in replica.log()]
        assert events[-1] == "stopped", replica.tail()
        assert "reconciled" in events[events.index("stopping") :], "no turn was under way when the signal came"
        # The load itself makes conflicts; anything else is a turn that was cut off.
        broken = [each for each in replica.log() if each.get("level") == "error" and "Conflict" not in each["error"]]
        figures.exactly("turns that were cut off", len(broken), 0)
    figures.at_most("orderly stop of a busy leader", slowest, 30, "s")


async def test_T36_a_second_signal_should_end_the_process_at_once(
    cluster: Folder, namespace: str, copies: Copies, tmp_path: Path, figures: Figures
) -> None:
    await asyncio.to_thread(copies.add, "source")
    replica = Replica(Settings(cluster.kubeconfig("admin"), namespace, lease=LEASE, delay=40), tmp_path, "one")
    trail = Trail(cluster, namespace)
    async with running(replica):
        await eventually(lambda: bool(trail.writes(agent=replica.agent)), 60, "a turn has begun")
        replica.terminate()
        await eventually(lambda: bool(replica.logged("stopping")), 10, "it stops")
        assert replica.is_running
        replica.terminate()
        code, seconds = await replica.exit_code(10)
    assert code == 1
    figures.at_most("end after a second signal", seconds, 0.2, "s")


async def test_T36_a_replica_that_does_not_lead_should_stop_without_doing_what_leaders_do(
    cluster: Folder, admin: Api, namespace: str, copies: Copies, tmp_path: Path, figures: Figures
) -> None:
    kubeconfig = cluster.kubeconfig("admin")
    settings = Settings(kubeconfig, namespace, lease=LEASE)
    leader, other = Replica(settings, tmp_path, "leader"), Replica(settings, tmp_path, "other")
    trail = Trail(cluster, namespace)
    await asyncio.to_thread(copies.add, "source")
    async with running(leader):
        await eventually(lambda: leader.is_leading, 60, "the first leads")
        holder = holder_of(admin, namespace, LEASE)
        async with running(other):
            await eventually(lambda: bool(other.logged("waiting to become leader")), 60, "the second waits")
            other.terminate()
            code, seconds = await other.exit_code(60)
        assert code == 0, other.tail()
        assert holder_of(admin, namespace, LEASE) == holder
        assert leader.is_leading
    figures.at_most("stop of one that does not lead", seconds, 30, "s")
    actions = len(trail.writes(agent=other.agent)) + len(other.logged("controller starts"))
    figures.exactly("leader-only actions of one that does not lead", actions, 0)


async def test_T36_a_process_should_stop_while_it_waits_for_its_caches(
    proxy: FaultProxy, cluster: Folder, admin: Api, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    replica = Replica(Settings(proxy.kubeconfig, namespace, lease=LEASE), tmp_path, "one")
    proxy.freeze()
    async with running(replica):
        await until(lambda: len(proxy.connections) > 0, 60)
        replica.terminate()
        code, seconds = await replica.exit_code(60)
        assert code == 0, replica.tail()
        assert not replica.logged("waiting to become leader")
    proxy.thaw()
    figures.at_most("stop while the caches fill", seconds, 30, "s")
    assert holder_of(admin, namespace, LEASE) is None
