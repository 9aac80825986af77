"""Faults of a watch: it is cut, it falls silent, and things happen meanwhile."""

import asyncio
import time

from clusters.api import Api
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import CutStream
from support.figures import Figures, scaled
from support.observer import configmap, observing, until


def is_watch(request: Request) -> bool:
    return request.is_watch and "configmaps" in request.path


async def test_T06_a_watch_that_is_cut_at_any_byte_should_lose_nothing(
    proxy: FaultProxy, admin: Api, namespace: str, figures: Figures
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    await asyncio.to_thread(admin.create, path, configmap("one", text="0"))
    cuts = scaled(330, 1500)
    async with observing(proxy.kubeconfig, namespace) as observer:
        relists = proxy.count(is_relist=True)
        # Each watch sends one event whole and is cut in the next, one byte later each time: in the head of a chunk, in
        # a key, in the middle of a rune. The event that was cut is the first of the watch that follows.
        proxy.rules = [CutStream(is_watch, times=1, after_events=1, after_bytes=number) for number in range(1, cuts)]
        proxy.cut_all()
        for number in range(cuts + 1):
            text = f"{number} déjà vu 🎉"
            await asyncio.to_thread(admin.merge, f"{path}/one", {"data": {"text": text}})
            await until(lambda: observer.data_of("one") == {"text": text}, 30)  # noqa: B023 - called at once
        struck = sum(rule.struck for rule in proxy.rules)
        seen = {data["text"] for name, data in observer.log.updates}
        relists = proxy.count(is_relist=True) - relists
    figures.at_least("cuts of a watch", struck, 300)
    figures.exactly("changes lost", sum(f"{number} déjà vu 🎉" not in seen for number in range(cuts + 1)), 0)
    figures.exactly("relists", relists, 0)


async def test_T07_a_watch_that_falls_silent_should_be_noticed_and_resumed(
    proxy: FaultProxy, admin: Api, namespace: str, figures: Figures
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    async with observing(proxy.kubeconfig, namespace) as observer:
        await until(lambda: proxy.count(is_watch=True) >= 1)
        relists, watches = proxy.count(is_relist=True), proxy.count(is_watch=True)
        proxy.freeze()
        frozen_at = time.monotonic()
        await asyncio.to_thread(admin.create, path, configmap("one"))
        # Frozen connections stay frozen; a new one is let through.
        attempts = len(proxy.connections)
        await until(lambda: len(proxy.connections) > attempts, 120)
        figures.at_most("silence noticed after", time.monotonic() - frozen_at, 95, "s")
        proxy.thaw()
        seconds = await until(lambda: observer.data_of("one") is not None, 30)
        figures.at_most("change seen after the reconnect", seconds, 2, "s")
        figures.exactly("relists", proxy.count(is_relist=True) - relists, 0)
        figures.at_least("new watches", proxy.count(is_watch=True) - watches, 1)
