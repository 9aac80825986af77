"""Crashes: a process is killed at any of its writes, and another goes on where it was."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusters.api import Api, Object
from clusters.folder import Folder
from support.copies import Copies, copies_in, eventually
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Strike
from support.figures import Figures, scaled
from support.realcluster import new_namespace
from support.replica import COPIER, Replica, Settings, running
from support.trail import Trail

AT_ONCE = max(2, os.cpu_count() or 2)
"""Starting a process costs most of the time here, and a processor."""


@dataclass(frozen=True)
class Point:
    """Where a process is killed."""

    number: int
    """Before or after which of its writes, counted from 0."""
    is_after: bool

    def __str__(self) -> str:
        return f"{'after' if self.is_after else 'before'}-{self.number}"


@dataclass(frozen=True)
class Ended:
    """What came of a run."""

    state: list[Object]
    """Everything there is, without what differs between any two runs."""
    writes: int
    """How many the API server heard of."""
    tokens: list[str]
    """The children that were really created, each as often as it was."""
    seconds: float
    """From when the program was loaded once more to the moment at which nothing was missing."""


class Run:
    """One life of some sources in a namespace, from their creation to the last copy of their last change."""

    def __init__(self, copies: Copies, trail: Trail, replica: Replica) -> None:
        self._copies = copies
        self._trail = trail
        self._replica = replica
        self._seconds = 0.0

    async def live(self, names: Sequence[str], *, is_killed: bool) -> Ended:
        """Do it all, and start the process again when it dies, which it must do once where `is_killed`."""
        await asyncio.to_thread(self._copies.add, *names)
        async with running(self._replica):
            await self._converge()
            for name in names:
                await asyncio.to_thread(self._copies.change, name, "changed")
            await self._converge()
            if is_killed and len(self._replica.agents) == 1:
                # The last write is seen before the process is killed for it.
                await self._replica.exit_code(10)
                await self._converge()
        return await asyncio.to_thread(self._result)

    async def _converge(self) -> None:
        await eventually(
            lambda: not self._replica.is_running or self._copies.are_complete(), 60, "all is done, or it was killed"
        )
        if not self._replica.is_running:
            await asyncio.to_thread(self._replica.start)
            await eventually(lambda: bool(self._replica.log()), 60, "the program has been loaded")
            await eventually(self._copies.are_complete, 60, "all is done after the restart")
            self._seconds = time.time() - self._replica.loaded_at

    def _result(self) -> Ended:
        assert not self._copies.duplicates()
        writes = self._trail.writes()
        created = [each.name for each in writes if each.verb == "create" and each.is_success]
        return Ended(
            state=self._copies.normalised(),
            writes=sum(each.agent in self._replica.agents for each in writes),
            tokens=sorted(name for name in created if name.endswith("-token")),
            seconds=self._seconds,
        )


def nth_write(namespace: str, number: int) -> Callable[[Request], bool]:
    """Match one write to the ConfigMaps of a namespace, counted from 0; to be asked once for each request."""
    seen = 0

    def matches(request: Request) -> bool:
        nonlocal seen
        if not (request.is_write and f"/namespaces/{namespace}/configmaps" in request.path):
            return False
        seen += 1
        return seen == number + 1

    return matches


@pytest.mark.parametrize("program", [pytest.param(COPIER, id="copier")])
async def test_T01_a_crash_at_any_write_should_change_nothing_in_the_end(
    program: Sequence[str], proxy: FaultProxy, cluster: Folder, admin: Api, tmp_path: Path, figures: Figures
) -> None:
    names = [f"source-{number}" for number in range(scaled(2, 8))]
    slots = asyncio.Semaphore(AT_ONCE)

    async def live(point: Point | None) -> Ended:
        async with slots:
            with new_namespace(admin) as namespace:
                replica = Replica(Settings(proxy.kubeconfig, namespace), tmp_path, str(point or "golden"), program)
                if point is not None:
                    match = nth_write(namespace, point.number)
                    strike = Strike(match, times=1, action=replica.kill, is_after=point.is_after)
                    proxy.rules = [*proxy.rules, strike]
                async with copies_in(cluster.kubeconfig("admin"), namespace) as copies:
                    run = Run(copies, Trail(cluster, namespace), replica)
                    ended = await run.live(names, is_killed=point is not None)
                assert len(replica.agents) == (1 if point is None else 2), f"{point}: {replica.agents}"
                return ended

    golden = await live(None)
    assert golden.tokens == sorted(f"{name}-copy-token" for name in names)
    points = [Point(number, is_after) for number in range(golden.writes) for is_after in (False, True)]
    ended = await asyncio.gather(*(live(point) for point in points))
    figures.at_least("crash points", len(points), scaled(20, 80))
    figures.exactly("ends that differ", sum(each.state != golden.state for each in ended), 0)
    figures.exactly("ends with something made twice", sum(each.tokens != golden.tokens for each in ended), 0)
    figures.at_most("all done after a restart", max(each.seconds for each in ended), 10, "s")
