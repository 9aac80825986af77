"""An object is deleted and another made under its name while nobody watches: they are two, however alike."""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable

from clusters.api import Api
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Respond, status
from support.figures import Figures, scaled
from support.observer import ConfigMap, Observer, configmap, observing, until


class Story:
    """What a handler was told of each name, in order: what happened, and to which uid."""

    def __init__(self) -> None:
        self.of: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)

    def on_add(self, obj: ConfigMap, is_initial: bool) -> None:
        self.of[obj.metadata.name].append(("add", obj.metadata.uid))

    def on_update(self, old: ConfigMap, new: ConfigMap) -> None:
        if old.metadata.uid != new.metadata.uid:
            self.of[new.metadata.name].append(("changed into", new.metadata.uid))

    def on_delete(self, obj: ConfigMap, is_final_state_unknown: bool) -> None:
        self.of[obj.metadata.name].append(("delete", obj.metadata.uid))


def is_plain_watch(request: Request) -> bool:
    return request.is_watch and "configmaps" in request.path and not request.is_relist


async def test_T31_an_object_replaced_while_its_watch_is_cut_should_be_seen_as_two(
    proxy: FaultProxy, admin: Api, namespace: str, figures: Figures
) -> None:
    times = scaled(40, 100)
    told, uids, relists = await _replace(proxy, admin, namespace, ["one"], times)
    expected = [("add", uids["one"][0])]
    for old, new in itertools.pairwise(uids["one"]):
        expected += [("delete", old), ("add", new)]
    figures.exactly("share of replacements seen as delete and add", _pairs_seen(told.of["one"], uids["one"]) / times, 1)
    figures.exactly("things told besides", len(told.of["one"]) - len(expected), 0)
    figures.exactly("relists", relists, 0)
    assert told.of["one"] == expected


async def test_T31_objects_replaced_before_a_relist_should_be_seen_as_two_each(
    proxy: FaultProxy, admin: Api, namespace: str, figures: Figures
) -> None:
    names = [f"object-{number:03}" for number in range(100)]
    proxy.rules = [Respond(is_plain_watch, times=1, status=410, body=status(410, "Expired"))]
    told, uids, relists = await _replace(proxy, admin, namespace, names, 1)
    seen = sum(_pairs_seen(told.of[name], uids[name]) for name in names)
    figures.exactly("share seen as delete and add by a relist", seen / len(names), 1)
    figures.exactly("things told besides, by a relist", sum(len(told.of[name]) for name in names) - 3 * len(names), 0)
    figures.exactly("relists that were due", relists, 1)


async def _replace(
    proxy: FaultProxy, admin: Api, namespace: str, names: list[str], times: int
) -> tuple[Story, dict[str, list[str]], int]:
    """Replace objects behind the informer's back; return what was told, the true uids, and the number of relists."""
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    uids: dict[str, list[str]] = {name: [] for name in names}

    def create(name: str) -> None:
        uids[name].append(admin.create(path, configmap(name))["metadata"]["uid"])

    for name in names:
        await asyncio.to_thread(create, name)
    story = Story()
    rules, proxy.rules = proxy.rules, []
    async with observing(proxy.kubeconfig, namespace) as observer:
        await observer.informer.add_handler(story).wait_synced()
        relists = proxy.count(is_relist=True)
        proxy.rules = rules
        for _ in range(times):
            # Nothing comes through any more, on the watch that is tried instead, either.
            proxy.freeze()
            proxy.cut_all()
            for name in names:
                await asyncio.to_thread(admin.delete, f"{path}/{name}")
                await asyncio.to_thread(create, name)
            proxy.thaw()
            await until(_holds(observer, {name: uids[name][-1] for name in names}), 30)
        relists = proxy.count(is_relist=True) - relists
    return story, uids, relists


def _holds(observer: Observer, uids: dict[str, str]) -> Callable[[], bool]:
    return lambda: {each.metadata.name: each.metadata.uid for each in observer.informer.store.list()} == uids


def _pairs_seen(told: list[tuple[str, str]], uids: list[str]) -> int:
    pairs = set(itertools.pairwise(told))
    return sum((("delete", old), ("add", new)) in pairs for old, new in itertools.pairwise(uids))
