"""A small API server in the process of the test, over HTTP and in virtual time: as much of one as our controllers need.

Lists, watches, get, create, apply, merge patch and delete with preconditions, of whatever resources it was given. The
status of TrainJobs is applied by the rules of server-side apply; on all else an apply lays its fields over the object.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from ktrainer.api.resources import TRAINJOBS
from ktrainer.client.selectors import Selectors
from ktrainer.kube.errors import ApiError
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.kube.patches import merge_apply
from ktrainer.kube.timestamp import format_time
from support.modelevents import api_error, status_of
from support.modelserver import ModelServer
from support.statusapply import AppliedStatus

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from ktrainer.aio.clock import Clock

Json = dict[str, Any]
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Call:
    """A request for an object, as the server saw it."""

    verb: str
    resource: Resource
    key: ObjectKey
    subresource: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.plural} {self.subresource}".strip()


@dataclass
class ApiServer:
    """The server; `stores` are what happens to its objects behind our back."""

    clock: Clock
    stores: dict[Resource, ModelServer]
    calls: list[Call] = field(default_factory=list)
    """All requests for single objects, reads too."""
    refuse: Callable[[Call], ApiError | None] = lambda call: None
    """What a request is answered with instead of being carried out."""
    refuse_change: Callable[[Call, Json, Json], ApiError | None] = lambda call, body, old: None
    """What a change of an object is answered with instead of being carried out, by what was sent and what there is."""
    shown: dict[Resource, ModelServer] = field(default_factory=dict)
    """What lists and watches show in place of what there is, as behind a watch that lags."""
    url: str = ""
    _statuses: dict[str, AppliedStatus] = field(default_factory=dict)
    _count: int = 0

    def create(self, resource: Resource, body: Json) -> Json:
        """Store a new object."""
        self._count += 1
        metadata = {
            "uid": f"uid-{self._count}",
            "generation": 1,
            "creationTimestamp": format_time(self.clock.now()),
            **body["metadata"],
        }
        key = ObjectKey(metadata.get("namespace", "") if resource.namespaced else "", metadata["name"])
        self.stores[resource].write(key, {**body, "metadata": metadata})
        return self.stores[resource].objects[key]

    def find(self, resource: Resource, name: str, namespace: str = "team-a") -> Json | None:
        """The object as it is now."""
        return self.stores[resource].objects.get(ObjectKey(namespace if resource.namespaced else "", name))

    def change(self, resource: Resource, name: str, patch: Json, namespace: str = "team-a") -> None:
        """Change an object by a merge patch, as somebody else would."""
        key = ObjectKey(namespace if resource.namespaced else "", name)
        old = self.stores[resource].objects[key]
        self._store(resource, key, merge_apply(patch, old), old)

    def remove(self, resource: Resource, name: str, namespace: str = "team-a") -> None:
        """Delete an object, as somebody else would."""
        self.stores[resource].delete(ObjectKey(namespace if resource.namespaced else "", name))

    def apply_status(self, name: str, manager: str, status: Json, namespace: str = "team-a") -> Json:
        """Apply the status of a TrainJob."""
        key = ObjectKey(namespace, name)
        old = self.stores[TRAINJOBS].objects[key]
        applied = self._statuses.setdefault(old["metadata"]["uid"], AppliedStatus())
        applied.apply(manager, status)
        self.stores[TRAINJOBS].write(key, {**old, "status": applied.value()})
        return self.stores[TRAINJOBS].objects[key]

    def writes(self) -> list[str]:
        """What was written, in order."""
        return [str(call) for call in self.calls if call.verb != "get" and call.resource.plural != "events"]

    def take(self) -> list[str]:
        """Return the same, and forget all requests."""
        writes = self.writes()
        self.calls.clear()
        return writes

    def _store(self, resource: Resource, key: ObjectKey, new: Json, old: Json) -> Json:
        if new.get("spec") != old.get("spec"):
            new["metadata"] = {**new["metadata"], "generation": old["metadata"].get("generation", 1) + 1}
        self.stores[resource].write(key, new)
        return self.stores[resource].objects[key]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer a request."""
        headers = {"Date": format_datetime(self.clock.now(), usegmt=True)}
        try:
            resource, key, subresource = self._parse(request.path)
            if request.method == "GET" and not key.name:
                return await self._list_or_watch(request, resource, key.namespace)
            answer = await self._answer(request, resource, key, subresource)
        except ApiError as error:
            content = status_of(error.code, error.reason, error.message)
            content["details"] = {"causes": [{"reason": cause.reason} for cause in error.details.causes]}
            if error.retry_after is not None:
                headers["Retry-After"] = f"{error.retry_after:.0f}"
            return web.Response(body=orjson.dumps(content), status=error.code, headers=headers)
        return web.Response(body=orjson.dumps(answer), headers=headers, content_type="application/json")

    def _parse(self, path: str) -> tuple[Resource, ObjectKey, str]:
        parts = path.strip("/").split("/")
        group = "" if parts[0] == "api" else parts[1]
        rest = parts[2:] if parts[0] == "api" else parts[3:]
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        for resource in self.stores:
            if (resource.group, resource.plural) == (group, rest[0]):
                name, subresource = (*rest[1:], "", "")[:2]
                return resource, ObjectKey(namespace, name), subresource
        raise api_error(404, "NotFound")

    async def _list_or_watch(self, request: web.Request, resource: Resource, namespace: str) -> web.StreamResponse:
        query, store = request.query, self.shown.get(resource, self.stores[resource])
        selectors = Selectors(labels=query.get("labelSelector", ""))
        metadata_only = "PartialObjectMetadata" in request.headers["Accept"]
        if "watch" not in query:
            page = await store.list_page(
                resource, namespace=namespace, selectors=selectors, metadata_only=metadata_only
            )
            return web.Response(body=page, headers={"Date": format_datetime(self.clock.now(), usegmt=True)})
        response = web.StreamResponse(headers={"Date": format_datetime(self.clock.now(), usegmt=True)})
        async with store.watch(
            resource,
            namespace=namespace,
            selectors=selectors,
            resource_version=query.get("resourceVersion", ""),
            timeout_seconds=int(query["timeoutSeconds"]),
            initial_events=query.get("sendInitialEvents") == "true",
            metadata_only=metadata_only,
            idle_seconds=None,
        ) as lines:
            await response.prepare(request)
            async for line in lines:
                await response.write(line + b"\n")
        return response

    async def _answer(self, request: web.Request, resource: Resource, key: ObjectKey, subresource: str) -> Json:
        body = orjson.loads(await request.read() or b"{}")
        verbs = {"GET": "get", "POST": "create", "DELETE": "delete"}
        verb = verbs.get(request.method) or ("apply" if request.content_type == APPLY else "patch")
        call = Call(verb, resource, key, subresource)
        self.calls.append(call)
        if refusal := self.refuse(call):
            raise refusal
        old = self.stores[resource].objects.get(key)
        if verb == "create":
            if ObjectKey(key.namespace, body["metadata"]["name"]) in self.stores[resource].objects:
                raise api_error(409, "AlreadyExists")
            return self.create(resource, {**body, "metadata": {**body["metadata"], "namespace": key.namespace}})
        uid = (body.get("preconditions") or body.get("metadata") or {}).get("uid")
        if old is None and verb == "apply" and not uid and not subresource:
            return self.create(resource, body)
        if old is None:
            raise api_error(404, "NotFound")
        self._check(body, old, uid)
        if refusal := self.refuse_change(call, body, old):
            raise refusal
        return self._change(call, body, old, request.query.get("fieldManager", ""))

    def _check(self, body: Json, old: Json, uid: str | None) -> None:
        wanted = (body.get("preconditions") or body.get("metadata") or {}).get("resourceVersion")
        if uid not in {None, old["metadata"]["uid"]} or wanted not in {None, old["metadata"]["resourceVersion"]}:
            raise api_error(409, "Conflict")

    def _change(self, call: Call, body: Json, old: Json, manager: str) -> Json:
        if call.verb == "get":
            return old
        if call.verb == "delete":
            self.stores[call.resource].delete(call.key)
            return {}
        if call.subresource == "status":
            return self.apply_status(call.key.name, manager, body["status"], call.key.namespace)
        return self._store(call.resource, call.key, merge_apply(body, old), old)


@asynccontextmanager
async def api_server(clock: Clock, resources: Iterable[Resource]) -> AsyncIterator[ApiServer]:
    """A server for the length of a test."""
    server = ApiServer(clock, {resource: ModelServer(resource) for resource in resources})
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
