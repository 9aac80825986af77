"""The first state as a stream, from servers that cannot send it, break it off, or take their time to end it."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from clusters.folder import Folder
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import CutStream, DelayLines, Respond, RewriteLines, Rule, error_event, status
from support.figures import Figures, scaled
from support.observer import Log, Observer, observing, until
from support.population import populate

FEW = 40
"""Objects, where a first state is fetched over and over."""

END = b"k8s.io/initial-events-end"
"""What marks the end of the first state."""


def is_initial_stream(request: Request) -> bool:
    return request.is_watch and request.is_relist and "configmaps" in request.path


def refused(_: int) -> Rule:
    """As by a server without streamed lists."""
    return Respond(is_initial_stream, status=422, body=status(422, "Invalid"))


def unsupported(_: int) -> Rule:
    """As by a server whose database is too old for them."""
    text = "required storage feature RequestWatchProgress is disabled"
    return RewriteLines(is_initial_stream, rewrite=lambda _: [error_event(500, "InternalError", text)])


def cut(run: int) -> Rule:
    """Before the end, one object earlier each time, beginning with the last."""
    return CutStream(is_initial_stream, times=1, after_events=FEW - run // len(VARIANTS), after_bytes=run)


def whole(_: int) -> Rule:
    """As it should be."""
    return Rule(is_initial_stream)


VARIANTS: tuple[Callable[[int], Rule], ...] = (refused, unsupported, cut, whole)


async def test_T11_a_first_state_should_never_be_taken_for_complete_too_early(
    proxy: FaultProxy, cluster: Folder, namespace: str, figures: Figures
) -> None:
    await populate(cluster.kubeconfig("admin"), namespace, (f"m-{number:05}" for number in range(FEW)))
    runs, early, slowest, fallbacks = scaled(40, 200), 0, 0.0, 0
    for run in range(runs):
        proxy.rules = [VARIANTS[run % len(VARIANTS)](run)]
        since = len(proxy.seen)
        async with observing(proxy.kubeconfig, namespace, synced=False) as observer:
            early += await _is_early(observer, FEW)
        streams = [each.at for each in proxy.seen[since:] if each.request.is_relist and each.request.is_watch]
        lists = [each.at for each in proxy.seen[since:] if each.request.is_list]
        assert len(lists) == (VARIANTS[run % len(VARIANTS)] is not whole)
        if lists:
            fallbacks += 1
            slowest = max(slowest, lists[0] - streams[0])
    figures.at_least("first states fetched", runs, 40)
    figures.exactly("taken for complete too early", early, 0)
    figures.exactly("fallbacks to a list", fallbacks, runs * 3 // 4)
    figures.at_most("fallback to a list after", slowest, 1, "s")


async def test_T11_an_end_of_the_first_state_that_is_late_should_be_waited_for(
    proxy: FaultProxy, crowd: str, crowd_size: int, figures: Figures
) -> None:
    seconds = scaled(5, 40)
    proxy.rules = [DelayLines(is_initial_stream, chosen=lambda line: END in line, seconds=seconds)]
    async with observing(proxy.kubeconfig, crowd, synced=False) as observer:
        await until(lambda: proxy.count(is_watch=True) == 1)
        opened_at = time.monotonic()
        early = await _is_early(observer, crowd_size)
        waited = time.monotonic() - opened_at
    figures.at_least("waited for an end that was late", waited, seconds, "s")
    figures.at_most("complete after a late end", waited - seconds, 5, "s")
    figures.exactly("taken for complete too early, the end being late", early, 0)
    figures.exactly("lists in place of the late stream", proxy.count(is_list=True), 0)


@pytest.mark.parametrize("variant", VARIANTS)
async def test_T11_a_large_first_state_should_become_complete(
    proxy: FaultProxy, crowd: str, crowd_size: int, figures: Figures, variant: Callable[[int], Rule]
) -> None:
    proxy.rules = [variant(0)]
    async with observing(proxy.kubeconfig, crowd, synced=False) as observer:
        began_at = time.monotonic()
        early = await _is_early(observer, crowd_size)
        seconds = time.monotonic() - began_at
    figures.exactly(f"taken for complete too early, large and {variant.__name__}", early, 0)
    figures.at_most(f"complete, large and {variant.__name__}", seconds, 60, "s")


async def _is_early(observer: Observer, size: int) -> bool:
    """Wait for informer and handler to have synced; return whether one of them had not got all by then."""
    log = Log()
    registration = observer.informer.add_handler(log)
    counts: list[int] = []

    async def count(wait: Callable[[], Awaitable[None]], have: Callable[[], int]) -> None:
        await wait()
        counts.append(have())

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(count(observer.informer.wait_synced, lambda: len(observer.informer.store)))
        tasks.create_task(count(observer.informer.wait_synced, lambda: len(observer.log.adds)))
        tasks.create_task(count(registration.wait_synced, lambda: len(log.adds)))
    return counts != [size] * 3
