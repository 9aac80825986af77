"""Crashes of the manager: it is killed at any write of the life of a TrainJob of any plugin, and started again.

One crash is the crash of many lives: each is held at a point of its own until all the others have come to theirs.
"""

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from clusters.api import Api, Object
from clusters.folder import Folder
from clusters.wait import wait_for
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Hold
from support.figures import IS_FULL, Figures, scaled
from support.goldenlives import GoldenLife, departures
from support.managers import Manager, ManagerSettings, installed_webhooks
from support.pluginlives import PLUGINS, PluginCase
from support.realcluster import new_namespace
from support.roles import installed_roles

PATIENCE_SECONDS = 60.0
CALM_SECONDS = 0.7
"""After what time without a request none is to be expected."""

AT_ONCE = len(PLUGINS)
"""How many lives are cut by one crash."""
STRIDE = 5
"""From the crash points of one plugin to those of the next, in the short form."""

# A runtime whose protection is held up must not hold up the others.
CONCURRENCY = {"controller": {"groupKindConcurrency": {"TrainingRuntime.trainer.kubeflow.org": AT_ONCE}}}

Golden = dict[str, Object]
"""What is left of an undisturbed life, by plugin."""

pytestmark = pytest.mark.usefixtures("crds")


@dataclass(frozen=True)
class Point:
    """Where the manager is killed."""

    case: PluginCase = field(hash=False)
    number: int
    """Before or after which of its writes, counted from 0."""
    is_after: bool

    def __str__(self) -> str:
        return f"{self.case.name}, {'after' if self.is_after else 'before'} write {self.number}"


@dataclass(frozen=True)
class Ended:
    """What came of a crash."""

    point: Point
    departures: Object
    """In what it differs from the golden life."""
    orphans: list[str]
    made_twice: list[str]
    seconds: float
    """From when the program was loaded once more to the moment at which all was as in the golden life."""


@dataclass(frozen=True)
class Doomed:
    """A life that is to be cut at a point."""

    point: Point
    life: GoldenLife
    hold: Hold

    @property
    def is_over(self) -> bool:
        """Whether the point is reached, or will not be."""
        return self.hold.held.is_set() or self.life.state == "Complete"

    def is_as(self, golden: Golden) -> bool:
        """Whether all has come to what it should."""
        return self.life.state == "Complete" and not departures(golden[self.point.case.name], self.life.left())


class Crashes:
    """The one manager, which reaches the API server through the proxy only, and the lives that it is killed in."""

    def __init__(self, cluster: Folder, admin: Api, proxy: FaultProxy, manager: Manager) -> None:
        self._cluster = cluster
        self._admin = admin
        self._proxy = proxy
        self._manager = manager

    @contextmanager
    def _life(self, case: PluginCase) -> Iterator[GoldenLife]:
        """A life in a namespace of its own."""
        with new_namespace(self._admin) as namespace:
            yield GoldenLife(self._cluster, self._admin, case, namespace)

    def golden(self) -> tuple[Golden, list[list[Point]]]:
        """Live a life of each plugin, all at once and undisturbed: what is left of each, and the points in it."""
        with ExitStack() as stack:
            lives = [(case, stack.enter_context(self._life(case))) for case in PLUGINS]
            for _, life in lives:
                life.begin()
            are_done = wait_for(lambda: all(life.state == "Complete" for _, life in lives), PATIENCE_SECONDS)
            assert are_done, {case.name: life.state for case, life in lives}
            self._wait_calm()
            return {case.name: life.left() for case, life in lives}, [self._points_in(*each) for each in lives]

    def _points_in(self, case: PluginCase, life: GoldenLife) -> list[Point]:
        writes = sum(life.is_write(each.request) for each in list(self._proxy.seen))
        return [Point(case, number, is_after) for number in range(writes) for is_after in (False, True)]

    def crash(self, points: Iterable[Point], golden: Golden) -> tuple[list[Ended], list[Point]]:
        """Kill the manager at some points at once and start it again: what came of it, and what it never reached."""
        with ExitStack() as stack:
            doomed = []
            for point in points:
                life = stack.enter_context(self._life(point.case))
                hold = Hold(from_nth(life.is_write, point.number), is_after=point.is_after)
                doomed.append(Doomed(point, life, hold))
            self._proxy.rules = [each.hold for each in doomed]
            for each in doomed:
                each.life.begin()
            are_over = wait_for(lambda: all(each.is_over for each in doomed), PATIENCE_SECONDS, interval=0.2)
            assert are_over, [f"{each.point}: {each.life.state}" for each in doomed if not each.is_over]
            self._wait_calm()
            self._manager.crash()
            self._proxy.rules = []
            reached = [each for each in doomed if each.hold.held.is_set()]
            self._manager.start()
            return self._ends_of(reached, golden), [each.point for each in doomed if each not in reached]

    def _ends_of(self, reached: list[Doomed], golden: Golden) -> list[Ended]:
        done_at: dict[Point, float] = {}

        def are_done() -> bool:
            for each in reached:
                if each.point not in done_at and each.is_as(golden):
                    done_at[each.point] = time.time()
            return len(done_at) == len(reached)

        wait_for(are_done, PATIENCE_SECONDS, interval=0.1)
        # Where the last write of all was done, everything is as it should be before it has begun.
        self._manager.wait_ready()
        loaded_at, now = self._manager.loaded_at, time.time()
        return [
            Ended(
                each.point,
                departures(golden[each.point.case.name], each.life.left()),
                each.life.orphans(),
                each.life.made_twice(),
                done_at.get(each.point, now) - loaded_at,
            )
            for each in reached
        ]

    def _wait_calm(self) -> None:
        """Wait until the manager has not asked for anything for a while."""
        count = -1
        while count != len(self._proxy.seen):
            count = len(self._proxy.seen)
            wait_for(lambda: False, CALM_SECONDS)


def from_nth(is_write: Callable[[Request], bool], number: int) -> Callable[[Request], bool]:
    """Match a write, counted from 0, and all later ones; to be asked once for each request."""
    writes = itertools.count()
    return lambda request: is_write(request) and next(writes) >= number


@pytest.fixture
def crashes(cluster: Folder, admin: Api, tmp_path: Path) -> Iterator[Crashes]:
    with FaultProxy(cluster.kubeconfig("trainer"), tmp_path) as proxy:
        settings = ManagerSettings(
            proxy.kubeconfig, folder=tmp_path, gates="TrainJobStatus=true", configuration=CONCURRENCY
        )
        manager = Manager(settings, tmp_path)
        with installed_roles(cluster, admin), installed_webhooks(admin, manager.ports):
            manager.start()
            try:
                manager.wait_ready()
                yield Crashes(cluster, admin, proxy, manager)
            finally:
                manager.crash()


def test_T01_the_manager_should_survive_a_crash_at_any_write(crashes: Crashes, figures: Figures) -> None:
    golden, points = crashes.golden()
    chosen = itertools.chain.from_iterable(points if IS_FULL else spread(points))
    # Those who wait for each other shall not have to wait for long.
    pending = sorted(chosen, key=lambda point: point.number)
    ended: list[Ended] = []
    while pending:
        done, missed = crashes.crash(pending[:AT_ONCE], golden)
        ended += done
        # A life may have fewer writes than the golden one, as changes are coalesced.
        pending = pending[AT_ONCE:] + [replace(point, number=point.number - 1) for point in missed if point.number]
    different = {str(each.point): each.departures for each in ended if each.departures}
    assert different == {}
    figures.at_least("crash points of the manager", len({each.point for each in ended}), scaled(15, 80))
    figures.at_least("plugins whose lives were cut", len({each.point.case.name for each in ended}), len(PLUGINS))
    figures.exactly("ends of TrainJobs that differ", len(different), 0)
    figures.exactly("orphans", sum(len(each.orphans) for each in ended), 0)
    figures.exactly("objects and keys made twice", sum(len(each.made_twice) for each in ended), 0)
    figures.at_most("a TrainJob done after a restart", max(each.seconds for each in ended), 10, "s")


def spread(points: list[list[Point]]) -> Iterator[list[Point]]:
    """Two points of each plugin, all together spread over all kinds of writes."""
    for index, each in enumerate(points):
        yield [each[(index * STRIDE + half) % len(each)] for half in (0, len(each) // 2)]
