"""What is kept of JobSets that are gone, on a replica where nobody reconciles."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from ktrainer.api.resources import JOBSETS, TRAINJOBS
from ktrainer.controllers.trainjob.departures import Departures, ForgetFinished
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from support.informers import build_cache, running
from support.modelserver import ModelServer
from support.training import API_VERSION
from support.virtualtime import settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

KEY = ObjectKey("team-a", "demo")
SPEC = {"runtimeRef": {"name": "rt"}, "n": 0}
COMPLETE = {"conditions": [{"type": "Complete", "status": "True", "reason": "x", "message": ""}]}


def jobset(uid: str, *, end: str = "Completed") -> CachedObject:
    """A JobSet of the TrainJob with this uid."""
    owner = {"apiVersion": API_VERSION, "kind": "TrainJob", "name": "demo", "uid": uid, "controller": True}
    metadata = {"name": "demo", "namespace": "team-a", "uid": f"jobset-of-{uid}", "ownerReferences": [owner]}
    conditions = [{"type": end, "status": "True", "reason": "Why", "message": "so"}] if end else []
    value = {"metadata": metadata, "spec": {"replicatedJobs": [{"name": "node"}]}, "status": {"conditions": conditions}}
    return msgspec.json.decode(orjson.dumps(value), type=CachedObject)


class Replica:
    """The TrainJobs of a server, and what is kept beside them."""

    def __init__(self, server: ModelServer, departures: Departures) -> None:
        self.server = server
        self.departures = departures

    def submit(self, **fields: Any) -> str:
        """Create the TrainJob; return its uid."""
        self.server.create("demo", "team-a", **{"spec": SPEC, **fields})
        uid: str = self.server.objects[KEY]["metadata"]["uid"]
        return uid

    def is_kept(self, uid: str) -> bool:
        return self.departures.last_of(KEY, uid) is not None


@asynccontextmanager
async def a_replica() -> AsyncIterator[Replica]:
    server = ModelServer(TRAINJOBS)
    cache = build_cache(server)
    trainjobs = cache.register(View(TRAINJOBS, CachedObject))
    departures = Departures(trainjobs, build_cache(ModelServer(JOBSETS)).register(View(JOBSETS, CachedObject)))
    trainjobs.add_handler(ForgetFinished(departures))
    async with running(cache):
        await trainjobs.wait_synced()
        yield Replica(server, departures)


async def test_the_end_of_a_jobset_should_be_kept_while_its_trainjob_has_none() -> None:
    async with a_replica() as replica:
        uid = replica.submit()
        await settle()
        replica.departures.on_delete(jobset(uid), False)
        last = replica.departures.last_of(KEY, uid)
        assert last is not None
        assert [(each.type, each.reason, each.message) for each in last.finished] == [("Complete", "Why", "so")]
        assert last.replicas == {"node": 1}
        assert not replica.is_kept("another")
        replica.departures.on_add(jobset(uid, end=""), False)
        assert not replica.is_kept(uid)


async def test_a_jobset_that_had_not_ended_should_leave_nothing() -> None:
    async with a_replica() as replica:
        uid = replica.submit()
        await settle()
        replica.departures.on_delete(jobset(uid, end=""), False)
        assert not replica.is_kept(uid)


async def test_a_trainjob_that_is_over_should_have_nothing_kept_for_it() -> None:
    async with a_replica() as replica:
        uid = replica.submit()
        await settle()
        replica.departures.on_delete(jobset(uid), False)
        replica.server.update(KEY, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
        await settle()
        assert replica.is_kept(uid), "whoever holds it may want to know how it ends"
        replica.server.update(KEY, status=COMPLETE)
        await settle()
        assert not replica.is_kept(uid)
        replica.departures.on_delete(jobset(uid), False)
        assert not replica.is_kept(uid)


async def test_a_trainjob_that_is_gone_should_have_nothing_kept_for_it() -> None:
    async with a_replica() as replica:
        uid = replica.submit()
        await settle()
        replica.departures.on_delete(jobset(uid), False)
        replica.server.delete(KEY)
        await settle()
        assert not replica.is_kept(uid)
        replica.departures.on_delete(jobset(uid), True)
        assert not replica.is_kept(uid), "what a TrainJob owned is deleted after it"
        replica.submit()
        await settle()
        replica.departures.on_delete(jobset(uid), True)
        assert not replica.is_kept(uid), "another TrainJob has its name"


async def test_news_of_a_former_trainjob_should_not_touch_its_successor() -> None:
    async with a_replica() as replica:
        uid = replica.submit()
        await settle()
        replica.departures.on_delete(jobset(uid), False)
        former = msgspec.json.decode(
            orjson.dumps({"metadata": {"name": "demo", "namespace": "team-a", "uid": "former"}, "status": COMPLETE}),
            type=CachedObject,
        )
        handler = ForgetFinished(replica.departures)
        handler.on_update(former, former)
        handler.on_delete(former, True)
        assert replica.is_kept(uid)


async def test_before_all_trainjobs_are_known_a_jobset_should_be_kept_for_the_unknown() -> None:
    server = ModelServer(TRAINJOBS)
    trainjobs = build_cache(server).register(View(TRAINJOBS, CachedObject))
    departures = Departures(trainjobs, build_cache(ModelServer(JOBSETS)).register(View(JOBSETS, CachedObject)))
    departures.on_delete(jobset("uid-1"), False)
    assert departures.last_of(KEY, "uid-1") is not None
