"""Answers that never come: the API server has done it, and nobody is told."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from prometheus_client import CollectorRegistry

from clusters.api import Api
from clusters.folder import Folder
from ktrainer.aio.clock import SystemClock
from ktrainer.client.client import Client
from ktrainer.client.config.config import load_config
from ktrainer.client.connect import connect
from ktrainer.client.errors import ConnectionLost
from ktrainer.client.patchtype import PatchType
from ktrainer.kube.errors import AlreadyExists, Conflict, NotFound
from ktrainer.kube.identity import ObjectKey
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import LoseAnswer
from support.figures import Figures, scaled
from support.observer import CONFIGMAPS, configmap
from support.trail import Trail

AT_ONCE = 6


class Losing:
    """A client of which every write is answered in vain once; each verb is tried on an object of its own."""

    def __init__(self, proxy: FaultProxy, client: Client, namespace: str) -> None:
        self._proxy = proxy
        self._client = client
        self._namespace = namespace
        self.rules: list[LoseAnswer] = []

    async def apply(self, name: str) -> None:
        """Applying is repeated by the client itself, and the repetition changes nothing."""
        rule = self._lose(name)
        answer = await self._client.apply(CONFIGMAPS, self._key(name), _body(name), field_manager="test")
        assert _version(answer) == _version(rule.lost[0].body)

    async def create(self, name: str) -> None:
        """Creating is not repeated; the caller tries again and finds what it made."""
        rule = self._lose(name)
        with pytest.raises(ConnectionLost) as lost:
            await self._client.create(CONFIGMAPS, self._namespace, _body(name))
        assert lost.value.sent
        with pytest.raises(AlreadyExists):
            await self._client.create(CONFIGMAPS, self._namespace, _body(name))
        found = await self._client.get(CONFIGMAPS, self._key(name))
        assert _version(found) == _version(rule.lost[0].body)

    async def update(self, name: str) -> None:
        """Replacing is not repeated; another try with the old version is refused."""
        created = json.loads(await self._client.create(CONFIGMAPS, self._namespace, _body(name)))
        changed = json.dumps({**created, "data": {"text": "changed"}}).encode()
        rule = self._lose(name)
        with pytest.raises(ConnectionLost):
            await self._client.update(CONFIGMAPS, self._key(name), changed)
        with pytest.raises(Conflict):
            await self._client.update(CONFIGMAPS, self._key(name), changed)
        assert _version(await self._client.get(CONFIGMAPS, self._key(name))) == _version(rule.lost[0].body)

    async def patch(self, name: str) -> None:
        """A patch is not repeated, since it may build on what it has changed."""
        await self._client.create(CONFIGMAPS, self._namespace, _body(name))
        rule = self._lose(name)
        patch = b'[{"op": "test", "path": "/data/text", "value": "0"}, {"op": "remove", "path": "/data/text"}]'
        with pytest.raises(ConnectionLost):
            await self._client.patch(CONFIGMAPS, self._key(name), patch, PatchType.JSON)
        assert _version(await self._client.get(CONFIGMAPS, self._key(name))) == _version(rule.lost[0].body)

    async def delete_known(self, name: str) -> None:
        """A delete of a certain object is repeated by the client itself, which finds that there is none."""
        created = json.loads(await self._client.create(CONFIGMAPS, self._namespace, _body(name)))
        self._lose(name)
        with pytest.raises(NotFound):
            await self._client.delete(CONFIGMAPS, self._key(name), uid=created["metadata"]["uid"])

    async def delete_unknown(self, name: str) -> None:
        """A delete of whatever has the name is not repeated: it could hit a successor."""
        await self._client.create(CONFIGMAPS, self._namespace, _body(name))
        self._lose(name)
        with pytest.raises(ConnectionLost):
            await self._client.delete(CONFIGMAPS, self._key(name))
        await self._client.create(CONFIGMAPS, self._namespace, _body(name))

    @property
    def verbs(self) -> list[Callable[[str], Awaitable[None]]]:
        """All of them."""
        return [self.apply, self.create, self.update, self.patch, self.delete_known, self.delete_unknown]

    def _lose(self, name: str) -> LoseAnswer:
        def is_about(request: Request) -> bool:
            return request.is_write and (
                request.path.endswith(f"/{name}") or f'"{name}"'.encode() in request.body.replace(b" ", b"")
            )

        rule = LoseAnswer(is_about, times=1)
        self.rules.append(rule)
        self._proxy.rules = [*self._proxy.rules, rule]
        return rule

    def _key(self, name: str) -> ObjectKey:
        return ObjectKey(self._namespace, name)


def _body(name: str) -> bytes:
    return json.dumps(configmap(name, text="0")).encode()


def _version(answer: bytes) -> str:
    return str(json.loads(answer)["metadata"]["resourceVersion"])


async def test_T15_an_answer_that_is_lost_should_lead_to_nothing_being_done_twice(
    proxy: FaultProxy, cluster: Folder, admin: Api, namespace: str, figures: Figures
) -> None:
    trail = Trail(cluster, namespace)
    slots = asyncio.Semaphore(AT_ONCE)
    connection = connect(
        load_config(proxy.kubeconfig, None),
        component="losing",
        clock=SystemClock(),
        registry=CollectorRegistry(),
        qps=1e6,
        burst=10**6,
    )
    losing = Losing(proxy, connection.client, namespace)
    verbs = [losing.verbs[number % len(losing.verbs)] for number in range(scaled(60, 500))]
    names = [f"{verb.__name__.replace('_', '-')}-{number}" for number, verb in enumerate(verbs)]

    async def lose(verb: Callable[[str], Awaitable[None]], name: str) -> None:
        async with slots:
            await verb(name)

    try:
        async with asyncio.TaskGroup() as tasks:
            for verb, name in zip(verbs, names, strict=True):
                tasks.create_task(lose(verb, name))
    finally:
        await connection.close()
    figures.exactly("answers that were lost", sum(rule.struck for rule in losing.rules), len(names))
    writes = await asyncio.to_thread(trail.writes, agent="losing")
    made = Counter(each.name for each in writes if each.verb == "create" and each.is_success)
    # What was deleted on purpose is made anew on purpose.
    figures.exactly("objects made twice", sum(made[each] != 1 + ("unknown" in each) for each in made), 0)
    items = admin.get(f"/api/v1/namespaces/{namespace}/configmaps?labelSelector=fault-test")["items"]
    assert {each["metadata"]["name"] for each in items} == {name for name in names if "-known" not in name}
