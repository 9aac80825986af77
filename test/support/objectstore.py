"""A model of an API server's storage: create, get, update and patch with resourceVersions, and nothing else."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import orjson

from ktrainer.kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound
from ktrainer.kube.patches import PatchError, apply

if TYPE_CHECKING:
    from ktrainer.client.patchtype import PatchType
    from ktrainer.kube.identity import ObjectKey, Resource
    from ktrainer.kube.jsonvalue import JsonObject

Trouble = Callable[[str, str], ApiError | None]


async def _at_once() -> None:
    await asyncio.sleep(0)


class ObjectStore:
    """Objects by plural and name. Each call takes effect at one instant, between two delays."""

    def __init__(self, delay: Callable[[], Awaitable[None]] = _at_once) -> None:
        self._delay = delay
        self._version = 0
        self._objects: dict[tuple[str, str], JsonObject] = {}
        self.writes: list[tuple[str, str]] = []
        """Every change that was accepted, as verb and plural."""
        self.reads = 0
        self.trouble: Trouble = lambda verb, plural: None
        """What a call fails with, given its verb and plural."""
        self.changed: Callable[[], None] = lambda: None
        """Called after every change."""

    def find(self, plural: str, name: str) -> JsonObject | None:
        return self._objects.get((plural, name))

    def put(self, plural: str, document: JsonObject) -> None:
        """Store an object as if somebody else did it."""
        self._version += 1
        document = {**document, "metadata": {**document["metadata"], "resourceVersion": str(self._version)}}
        self._objects[(plural, document["metadata"]["name"])] = document
        self.changed()

    def remove(self, plural: str, name: str) -> None:
        self._objects.pop((plural, name), None)
        self.changed()

    async def get(self, resource: Resource, key: ObjectKey) -> bytes:
        self.reads += 1
        await self._delay()
        content = orjson.dumps(self._existing("get", resource, key))
        await self._delay()
        return content

    async def create(self, resource: Resource, namespace: str, body: bytes) -> bytes:
        await self._delay()
        document = orjson.loads(body)
        self._fail("create", resource)
        if self.find(resource.plural, document["metadata"]["name"]):
            raise AlreadyExists(409, "AlreadyExists", "it exists")
        return await self._store("create", resource, document)

    async def update(self, resource: Resource, key: ObjectKey, body: bytes) -> bytes:
        await self._delay()
        document = orjson.loads(body)
        current = self._existing("update", resource, key)
        if document["metadata"].get("resourceVersion") != current["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "it has changed")
        return await self._store("update", resource, document)

    async def patch(self, resource: Resource, key: ObjectKey, body: bytes, patch_type: PatchType) -> bytes:
        await self._delay()
        current = self._existing("patch", resource, key)
        try:
            document = apply(orjson.loads(body), current)
        except PatchError as error:
            raise Invalid(422, "Invalid", str(error))
        return await self._store("patch", resource, document)

    async def _store(self, verb: str, resource: Resource, document: JsonObject) -> bytes:
        self.writes.append((verb, resource.plural))
        self.put(resource.plural, document)
        await self._delay()
        return orjson.dumps(document)

    def _existing(self, verb: str, resource: Resource, key: ObjectKey) -> JsonObject:
        self._fail(verb, resource)
        document = self.find(resource.plural, key.name)
        if document is None:
            raise NotFound(404, "NotFound", f"no {key.name}")
        return document

    def _fail(self, verb: str, resource: Resource) -> None:
        if error := self.trouble(verb, resource.plural):
            raise error


def webhook_configuration(name: str, *webhooks: str, bundle: bytes | None = None) -> JsonObject:
    """A webhook configuration, as far as certificates are concerned."""
    call: dict[str, Any] = {"service": {"name": "hook", "namespace": "system", "port": 443}}
    if bundle is not None:
        call["caBundle"] = base64.b64encode(bundle).decode()
    return {"metadata": {"name": name}, "webhooks": [{"name": each, "clientConfig": call} for each in webhooks]}


def bundle_of(configuration: JsonObject | None, index: int = 0) -> bytes:
    """The PEM in one of the webhooks."""
    assert configuration is not None
    return base64.b64decode(configuration["webhooks"][index]["clientConfig"].get("caBundle", ""))
