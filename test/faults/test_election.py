"""Several replicas and one lease: whatever happens to them or to it, one of them works, and never two."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

from clusters.api import Api
from clusters.folder import Folder
from support.copies import churning, copies_in, eventually
from support.faultproxy.proxy import FaultProxy
from support.figures import Figures, scaled
from support.realcluster import new_namespace
from support.replica import Replica, Settings, running
from support.tenure import strays, tenures_of
from support.trail import Trail, Write

LEASE = "copier"
SOURCES = [f"source-{number}" for number in range(10)]
DELAY_SECONDS = 1.0
"""How long each turn takes, so that there is always one under way."""


@dataclass(frozen=True)
class Pair:
    """A leader that is busy, and another replica that waits for its chance."""

    leader: Replica
    other: Replica
    trail: Trail


@asynccontextmanager
async def busy_pair(cluster: Folder, namespace: str, folder: Path) -> AsyncIterator[Pair]:
    """Run a pair in a namespace of its own."""
    kubeconfig = cluster.kubeconfig("admin")
    async with copies_in(kubeconfig, namespace) as copies:
        await asyncio.to_thread(copies.add, *SOURCES)
    settings = Settings(kubeconfig, namespace, lease=LEASE, workers=4, delay=DELAY_SECONDS)
    pair = Pair(Replica(settings, folder, "leader"), Replica(settings, folder, "other"), Trail(cluster, namespace))
    async with churning(kubeconfig, namespace, SOURCES, per_second=5), running(pair.leader):
        await eventually(lambda: bool(pair.trail.writes(agent=pair.leader.agent)), 60, "the first works")
        async with running(pair.other):
            await eventually(lambda: bool(pair.other.logged("waiting to become leader")), 60, "the second waits")
            yield pair


async def test_T02_a_leader_that_stood_still_should_not_write_any_more(
    cluster: Folder, admin: Api, tmp_path: Path, figures: Figures
) -> None:
    async def stand_still(pair: Pair) -> tuple[float, float, int]:
        """Return when another led, how long the old leader was there after that, and how much it wrote."""
        ends_at = time.monotonic() + scaled(20, 30)
        pair.leader.freeze()
        led = await eventually(lambda: pair.other.is_leading, 40, "another leads")
        await eventually(lambda: bool(pair.trail.writes(agent=pair.other.agent)), 20, "another works")
        await asyncio.sleep(ends_at - time.monotonic())
        pair.leader.thaw()
        code, left = await pair.leader.exit_code(10)
        assert code > 0, pair.leader.tail()
        # Whatever was on its way arrives meanwhile.
        await asyncio.sleep(2)
        return led, left, len(await asyncio.to_thread(strays_of, pair))

    def strays_of(pair: Pair) -> list[Write]:
        tenures = tenures_of(pair.trail, [pair.leader, pair.other])
        assert [each.agent for each in tenures] == [pair.leader.agent, pair.other.agent]
        return strays(tenures, pair.trail.writes(agent=pair.leader.agent))

    seen = []
    for number in range(scaled(1, 50)):
        with new_namespace(admin) as namespace:
            async with busy_pair(cluster, namespace, tmp_path / str(number)) as pair:
                seen.append(await stand_still(pair))
    figures.at_most("another leads", max(led for led, _, _ in seen), 25, "s")
    figures.at_most("exit of one that stood still", max(left for _, left, _ in seen), 2, "s")
    figures.exactly("writes of one that led before", sum(count for _, _, count in seen), 0)


def steal(admin: Api, path: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    admin.merge(path, {"spec": {"holderIdentity": "thief", "acquireTime": now, "renewTime": now}})


def clear(admin: Api, path: str) -> None:
    admin.merge(path, {"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}})


def delete(admin: Api, path: str) -> None:
    admin.delete(path)


def garble(admin: Api, path: str) -> None:
    spec = {
        "holderIdentity": '☃ "\\{\n\t',
        "leaseDurationSeconds": 2,
        "leaseTransitions": 2**31 - 1,
        "acquireTime": "9999-12-31T23:59:59.999999Z",
        "renewTime": "0001-01-01T00:00:00.000000Z",
    }
    admin.merge(path, {"spec": spec})


async def test_T19_a_lease_that_somebody_meddles_with_should_end_one_reign_and_begin_another(
    cluster: Folder, admin: Api, tmp_path: Path, figures: Figures
) -> None:
    async def meddle(how: Callable[[Api, str], None]) -> tuple[float, int, float]:
        """Return when the old leader stopped, how much it wrote after that, and when another led."""
        with new_namespace(admin) as namespace:
            async with busy_pair(cluster, namespace, tmp_path / how.__name__) as pair:
                began_at = time.time()
                how(admin, f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE}")
                code, _ = await pair.leader.exit_code(15)
                assert code > 0, pair.leader.tail()
                await eventually(lambda: pair.other.is_leading, 40, "another leads")
                stopped_at = pair.leader.logged_at("stopped leading")
                writes = await asyncio.to_thread(pair.trail.writes, agent=pair.leader.agent)
                late = [each for each in writes if each.is_success and each.received_at > stopped_at]
                return stopped_at - began_at, len(late), pair.other.logged_at("became leader") - began_at

    ways = (steal, clear, delete, garble)
    ends = await asyncio.gather(*map(meddle, ways))
    for how, (stopped, late, led) in zip(ways, ends, strict=True):
        figures.at_most(f"{how.__name__}: the old leader stops", stopped, 3, "s")
        figures.exactly(f"{how.__name__}: writes of the old leader after that", late, 0)
        figures.at_most(f"{how.__name__}: another leads", led, 25, "s")


class Crowd:
    """Three replicas, each with a way of its own to the API server, and what was done to whichever led."""

    def __init__(self, replicas: Mapping[Replica, FaultProxy], trail: Trail) -> None:
        self._replicas = replicas
        self._trail = trail
        self._blows: list[tuple[str, float]] = []
        """What was done to a leader, and when in Unix time."""

    async def strike(self, how: str, seconds: float) -> None:
        """Do something to the leader that lasts so long, if it lasts; start the process again; wait for a successor."""
        await eventually(lambda: self._leader() is not None, 60, "somebody leads")
        leader = await asyncio.to_thread(self._leader)
        assert leader is not None
        await eventually(lambda: bool(self._trail.writes(agent=leader.agent)), 60, "the leader works")
        self._blows.append((how, time.time()))
        match how:
            case "kill":
                leader.kill()
            case "release":
                leader.terminate()
            case "stop":
                leader.freeze()
                await asyncio.sleep(seconds)
                leader.thaw()
            case "partition":
                self._replicas[leader].freeze()
                await asyncio.sleep(seconds)
                self._replicas[leader].thaw()
        code, _ = await leader.exit_code(20)
        assert (code == 0) == (how == "release"), leader.tail()
        await asyncio.to_thread(leader.start)

    def _leader(self) -> Replica | None:
        return next((each for each in self._replicas if each.is_leading), None)

    def report(self, figures: Figures) -> None:
        """Judge it all by the audit log."""
        tenures = tenures_of(self._trail, self._replicas)
        agents = {agent for replica in self._replicas for agent in replica.agents}
        writes = [each for each in self._trail.writes() if each.agent in agents]
        figures.exactly("writes of one that does not lead", len(strays(tenures, writes)), 0)
        for how, struck_at in self._blows:
            began_at = next(each.began_at for each in tenures if each.agent and each.began_at > struck_at)
            figures.at_most(f"{how}: another leads", began_at - struck_at, 6 if how == "release" else 25, "s")
        times = [each.answered_at for each in writes if each.is_success]
        figures.at_most(
            "longest time without a write", max(later - earlier for earlier, later in pairwise(times)), 30, "s"
        )


async def test_T18_of_three_replicas_exactly_one_should_work_whatever_happens_to_them(
    cluster: Folder, namespace: str, tmp_path: Path, figures: Figures
) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}")  # noqa: T201 - to repeat a run that failed
    choice = random.Random(seed)
    ways = ["kill", "stop", "partition", "release"]
    choice.shuffle(ways)
    ways += choice.choices(ways, k=scaled(0, 60))
    kubeconfig = cluster.kubeconfig("admin")
    async with copies_in(kubeconfig, namespace) as copies:
        await asyncio.to_thread(copies.add, *SOURCES)
        with ExitStack() as stack:
            replicas: dict[Replica, FaultProxy] = {}
            for name in ("one", "two", "three"):
                await asyncio.to_thread((tmp_path / name).mkdir)
                proxy = stack.enter_context(await asyncio.to_thread(FaultProxy, kubeconfig, tmp_path / name))
                settings = Settings(proxy.kubeconfig, namespace, lease=LEASE, workers=4, delay=0.2)
                replicas[Replica(settings, tmp_path / name, name)] = proxy
            crowd = Crowd(replicas, Trail(cluster, namespace))
            async with running(*replicas):
                async with churning(kubeconfig, namespace, SOURCES, per_second=4):
                    for way in ways:
                        await crowd.strike(way, seconds=16 + 4 * choice.random())
                        await asyncio.sleep(3 * choice.random())
                    await eventually(lambda: any(each.is_leading for each in replicas), 60, "somebody leads")
                await eventually(copies.are_complete, 60, "all is copied in the end")
    await asyncio.to_thread(crowd.report, figures)
