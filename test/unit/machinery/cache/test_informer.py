"""What an informer shows, and tells its handlers."""

import asyncio
from dataclasses import dataclass, field

import orjson
import pytest

from ktrainer.client.selectors import Selectors
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.machinery.cache.informer import RESYNC_SECONDS, Informer
from ktrainer.machinery.cache.objects import CachedObject, decoded
from ktrainer.machinery.cache.reflector.pace import SLICE_STEPS
from ktrainer.machinery.cache.source import View
from support.informers import WIDGET_VIEW, Recorder, build_cache, contents_of, contents_of_server, informing, running
from support.modelevents import api_error, line_of
from support.modelserver import WIDGETS, InitialEvents, ModelServer
from support.virtualtime import settle

NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
DEEP = orjson.Fragment(b"[" * 1500 + b"]" * 1500)


@dataclass
class Peeking:
    """A handler that compares what it is told with the store."""

    informer: Informer[CachedObject]
    behind: list[str] = field(default_factory=list)
    """Of whom the store knew less than the handler."""

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        self._look(obj)

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        self._look(new)

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        known = self.informer.store.get(obj.key)
        if known is not None and known.metadata.uid == obj.metadata.uid:
            self.behind.append(obj.metadata.name)

    def _look(self, obj: CachedObject) -> None:
        known = self.informer.store.get(obj.key)
        if known is None or int(known.metadata.resource_version) < int(obj.metadata.resource_version):
            self.behind.append(obj.metadata.name)


@dataclass
class Telling:
    """A handler that notes whether its informer says at each deletion that there may be more to tell."""

    informer: Informer[CachedObject]
    deletions: list[bool] = field(default_factory=list)

    def on_add(self, obj: CachedObject, is_initial: bool) -> None:
        pass

    def on_update(self, old: CachedObject, new: CachedObject) -> None:
        pass

    def on_delete(self, obj: CachedObject, is_final_state_unknown: bool) -> None:
        self.deletions.append(self.informer.is_telling)


async def test_the_store_should_never_be_behind_what_handlers_are_told() -> None:
    server = ModelServer()
    cache = build_cache(server)
    informer = cache.register(WIDGET_VIEW)
    peeking = Peeking(informer)
    informer.add_handler(peeking)
    keys = [server.create(f"w{number}") for number in range(200)]
    async with running(cache):
        await informer.wait_synced()
        for key in keys[:50]:
            server.update(key)
            server.delete(key)
            server.create(key.name)
        await asyncio.sleep(5)
        server.send_error(410, "Expired")
        for key in keys[100:]:
            server.delete(key)
        await asyncio.sleep(5)
        assert contents_of(informer.store) == contents_of_server(server)
    assert peeking.behind == []


async def test_handlers_that_do_not_know_all_of_a_relist_yet_should_be_known() -> None:
    server = ModelServer()
    keys = [server.create(f"w{number}") for number in range(4 * SLICE_STEPS)]
    async with informing(server) as (informer, _):
        told = Telling(informer)
        informer.add_handler(told)
        await informer.wait_synced()
        await settle()
        assert not informer.is_telling
        server.freeze()
        for key in keys[::2]:
            server.delete(key)
        server.compact()
        await asyncio.sleep(100)
        assert (len(told.deletions), all(told.deletions)) == (len(keys) // 2, True)
        assert not informer.is_telling


async def test_an_object_that_came_back_under_its_name_should_be_another() -> None:
    server = ModelServer()
    key, other = server.create("a"), server.create("b")
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(5)
        recorder.take()
        server.freeze()
        for each in (key, other):
            server.delete(each)
            server.create(each.name)
        server.compact()
        await asyncio.sleep(100)
        told = recorder.take()
        for name in ("default/a", "default/b"):
            assert [what for what, whom in told if whom == name] == ["tombstone", "add"]
        assert contents_of(informer.store) == contents_of_server(server)


async def test_a_change_into_another_object_should_be_a_deletion_and_an_addition() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (_, recorder):
        await settle()
        recorder.take()
        server.update(key, metadata={"uid": "another"})
        await settle()
        assert recorder.take() == [("tombstone", "default/a"), ("add", "default/a")]


async def test_the_deletion_of_another_object_should_be_that_of_the_one_we_know() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (informer, recorder):
        await settle()
        recorder.take()
        server.objects[key] = {**server.objects[key], "metadata": {**server.objects[key]["metadata"], "uid": "x"}}
        server.delete(key)
        await settle()
        assert recorder.take() == [("tombstone", "default/a")]
        assert len(informer.store) == 0


async def test_the_deletion_of_what_nobody_knows_should_not_be_told() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (informer, recorder):
        await settle()
        obj = server.objects[key]
        server.delete(key)
        server.send(line_of("DELETED", {**obj, "metadata": {**obj["metadata"], "resourceVersion": "103"}}))
        await settle()
        assert recorder.take() == [("initial", "default/a"), ("delete", "default/a")]
        assert informer.store.resource_version == "103"


async def test_the_final_state_should_be_told_where_it_is_known() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (_, recorder):
        await settle()
        server.delete(key)
        await settle()
        assert recorder.take()[-1] == ("delete", "default/a")


async def test_a_late_handler_should_be_told_of_all_that_is_there_and_no_more() -> None:
    server = ModelServer()
    key = server.create("a")
    async with informing(server) as (informer, _):
        await settle()
        late = Recorder()
        server.create("b")
        await settle()
        registration = informer.add_handler(late)
        server.update(key)
        assert not registration.has_synced
        await registration.wait_synced()
        await settle()
        server.delete(key)
        await settle()
        assert sorted(late.told[:2]) == [("initial", "default/a"), ("initial", "default/b")]
        assert late.told[2:] == [("update", "default/a"), ("delete", "default/a")]
        assert late.problems == []
        assert late.objects.keys() == {ObjectKey("default", "b")}


@pytest.mark.parametrize("passes", range(12))
async def test_a_handler_that_comes_at_any_moment_should_miss_and_double_nothing(passes: int) -> None:
    server = ModelServer()
    for number in range(3 * SLICE_STEPS):
        server.create(f"w{number}")
    cache = build_cache(server)
    informer, late = cache.register(WIDGET_VIEW), Recorder()
    informer.add_handler(Recorder())
    async with running(cache):
        for _ in range(passes):
            await asyncio.sleep(0)
        registration = informer.add_handler(late)
        for key in list(server.objects)[::7]:
            server.update(key)
        server.delete(next(iter(server.objects)))
        await registration.wait_synced()
        await settle()
        assert late.problems == []
        assert {key: (obj.metadata.uid, obj.metadata.resource_version) for key, obj in late.objects.items()} == (
            contents_of_server(server)
        )


async def test_a_handler_should_not_be_synced_before_its_last_initial_object() -> None:
    server = ModelServer()
    for number in range(5 * SLICE_STEPS):
        server.create(f"w{number}")
    cache = build_cache(server)
    informer, recorder = cache.register(WIDGET_VIEW), Recorder()
    registration = informer.add_handler(recorder)
    seen: set[int] = set()
    async with running(cache):
        while not (registration.has_synced and informer.has_synced):
            if registration.has_synced or informer.has_synced:
                pytest.fail("one has synced before the other")
            seen.add(len(recorder.told))
            await asyncio.sleep(0)
        assert len(recorder.told) == len(server.objects)
    assert len(seen) >= 5, "the objects came in slices"


async def test_everything_should_be_shown_again_after_ten_hours_more_or_less() -> None:
    server = ModelServer(bookmark_seconds=None)
    server.create("a")
    server.create("b")
    async with informing(server) as (_, recorder):
        await asyncio.sleep(5)
        recorder.take()
        await asyncio.sleep(0.9 * RESYNC_SECONDS - 10)
        assert recorder.take() == []
        await asyncio.sleep(0.2 * RESYNC_SECONDS + 10)
        assert sorted(recorder.take()) == [("sync", "default/a"), ("sync", "default/b")]
        assert {str(asked) for asked in server.asked} == {"state", "watch 102", "probe"}
        await asyncio.sleep(1.1 * RESYNC_SECONDS)
        assert len(recorder.take()) >= 2


async def test_selectors_should_be_the_servers_business_in_lists_and_watches() -> None:
    selectors = Selectors(labels="app=x", fields="spec.n=0")
    view = View(WIDGETS, CachedObject, selectors=selectors, namespace="ns")
    server = ModelServer(initial_events=InitialEvents.INVALID)
    chosen = server.create("a", "ns", metadata={"labels": {"app": "x"}})
    server.create("b", "ns", metadata={"labels": {"app": "y"}})
    server.create("c", "other", metadata={"labels": {"app": "x"}})
    async with informing(server, view) as (informer, recorder):
        await settle()
        assert informer.store.keys() == (chosen,)
        server.update(chosen, metadata={"labels": {}})
        await settle()
        assert recorder.take() == [("initial", "ns/a"), ("delete", "ns/a")]
        assert {(asked.selectors, asked.namespace) for asked in server.asked} == {(selectors, "ns")}
        assert len(server.asked) == 3


@pytest.mark.parametrize("initial_events", [InitialEvents.SERVED, InitialEvents.INVALID])
async def test_a_view_of_metadata_should_fetch_nothing_else(initial_events: InitialEvents) -> None:
    view = View(WIDGETS, CachedObject, metadata_only=True)
    server = ModelServer(initial_events=initial_events)
    key = server.create("a")
    async with informing(server, view) as (informer, _):
        await settle()
        server.update(key)
        await settle()
        obj = informer.store.get(key)
        assert obj is not None
        assert (obj.kind, obj.metadata.resource_version, decoded(obj.spec)) == ("Widget", "102", None)
        assert all(asked.metadata_only for asked in server.asked)


async def test_cluster_scoped_kinds_should_ignore_namespaces() -> None:
    server = ModelServer(resource=NODES)
    key = server.create("n")
    async with informing(server, View(NODES, CachedObject, namespace="ns")) as (informer, _):
        await settle()
        assert informer.store.keys() == (key,) == (ObjectKey("", "n"),)
        assert server.asked[0].namespace == ""


@pytest.mark.parametrize("initial_events", [InitialEvents.SERVED, InitialEvents.INVALID])
async def test_an_object_that_becomes_unreadable_should_stay_as_it_was_until_it_is_gone(
    initial_events: InitialEvents,
) -> None:
    server = ModelServer(initial_events=initial_events)
    key, other = server.create("a"), server.create("b")
    async with informing(server) as (informer, recorder):
        await asyncio.sleep(5)
        recorder.take()
        server.write(key, {"metadata": {**server.objects[key]["metadata"], "labels": "odd"}})
        server.update(other)
        await settle()
        assert recorder.take() == [("update", "default/b")]
        server.send_error(410, "Expired")
        await asyncio.sleep(5)
        assert sorted(recorder.take()) == [("sync", "default/a"), ("sync", "default/b")]
        known = informer.store.get(key)
        assert known is not None
        assert known.metadata.resource_version == "101"
        server.delete(key)
        await settle()
        assert recorder.take() == [("tombstone", "default/a")]


@pytest.mark.parametrize("initial_events", [InitialEvents.SERVED, InitialEvents.INVALID])
async def test_monstrous_objects_should_not_hide_the_others(initial_events: InitialEvents) -> None:
    server = ModelServer(initial_events=initial_events)
    for number in range(20):
        server.create(f"w{number}")
    server.write(ObjectKey("default", "deep"), {"metadata": {"name": "deep", "namespace": "default"}, "spec": DEEP})
    async with informing(server) as (informer, _):
        await settle()
        assert informer.has_synced
        server.update(ObjectKey("default", "w3"))
        server.write(ObjectKey("default", "deep2"), {"metadata": {"name": "d2", "namespace": "default"}, "spec": DEEP})
        await settle()
        assert len(informer.store) == 22
        server.delete(ObjectKey("default", "deep"))
        server.delete(ObjectKey("default", "deep2"))
        await settle()
        assert contents_of(informer.store) == contents_of_server(server)


async def test_an_absent_optional_kind_should_keep_nobody_waiting() -> None:
    server = ModelServer(outage=api_error(404, "NotFound"))
    view = View(WIDGETS, CachedObject, is_optional=True)
    async with informing(server, view) as (informer, recorder):
        registration = informer.add_handler(Recorder())
        await asyncio.sleep(1)
        assert informer.has_synced
        assert registration.has_synced
        assert informer.reader.list() == ()
        server.outage = None
        server.create("a")
        await asyncio.sleep(12)
        assert recorder.take() == [("initial", "default/a")]
        assert contents_of(informer.store) == contents_of_server(server)


async def test_the_arrival_of_a_kind_should_be_told_each_time_and_after_its_objects() -> None:
    server = ModelServer(outage=api_error(404, "NotFound"))
    view = View(WIDGETS, CachedObject, is_optional=True)
    arrivals: list[int] = []
    async with informing(server, view) as (informer, recorder):
        informer.on_arrival(lambda: arrivals.append(len(recorder.told)))
        for number in (1, 2):
            await asyncio.sleep(60)
            assert len(arrivals) == number - 1
            server.outage = None
            server.create(f"w{number}")
            await asyncio.sleep(12)
            assert arrivals[-1] == len(recorder.told) > 0
            server.send_error(410, "Expired")
            await asyncio.sleep(60)
            assert len(arrivals) == number
            server.outage = api_error(404, "NotFound")
            server.send_error(410, "Expired")


@pytest.mark.parametrize("outage", [None, api_error(500, "InternalError")])
async def test_a_kind_that_was_always_there_should_not_arrive(outage: Exception | None) -> None:
    server, arrivals = ModelServer(outage=outage), list[str]()
    async with informing(server, View(WIDGETS, CachedObject, is_optional=True)) as (informer, _):
        informer.on_arrival(lambda: arrivals.append("widgets"))
        await asyncio.sleep(60)
        server.outage = None
        server.send_error(410, "Expired")
        await asyncio.sleep(60)
        assert (informer.has_synced, arrivals) == (True, [])


async def test_one_that_fails_at_an_arrival_should_harm_nobody() -> None:
    server = ModelServer(outage=api_error(404, "NotFound"))
    arrivals: list[str] = []
    async with informing(server, View(WIDGETS, CachedObject, is_optional=True)) as (informer, recorder):
        informer.on_arrival(lambda: arrivals.remove("nobody"))
        informer.on_arrival(lambda: arrivals.append("widgets"))
        await asyncio.sleep(1)
        server.outage = None
        await asyncio.sleep(12)
        server.create("a")
        await settle()
        assert (arrivals, recorder.take()) == (["widgets"], [("add", "default/a")])


async def test_stopping_should_close_the_stream() -> None:
    server = ModelServer()
    async with informing(server):
        await settle()
        assert len(server.streams) == 1
    assert server.streams == []


async def test_an_informer_should_not_start_twice() -> None:
    cache = build_cache(ModelServer())
    informer = cache.register(WIDGET_VIEW)
    async with running(cache):
        await settle()
        with pytest.raises(RuntimeError, match="widgets"):
            await informer.run()
