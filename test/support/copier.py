"""A small program of the kit, to be killed, stopped and cut off: keeps copies of ConfigMaps in one namespace.

A source has the label `copier.example/role: source` and names its copy in the annotation `copier.example/to`. Three
writes make it so: the copy is applied; a second child with a random token is created once and never again; and the
source is annotated with what has been copied. Run it as a script; its log is JSON, a line each.
"""

from __future__ import annotations

import argparse
import asyncio
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import orjson
import structlog

from ktrainer.client.config.config import load_config
from ktrainer.client.patchtype import PatchType
from ktrainer.client.selectors import Selectors
from ktrainer.kube.errors import AlreadyExists
from ktrainer.kube.identity import ObjectKey, Resource
from ktrainer.kube.owners import build_controller_reference, is_controlled_by, owners_of
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.control.controller import ControllerSettings
from ktrainer.machinery.control.handlers import MapFunc
from ktrainer.machinery.control.reconcile import Result, RetryableError, Stale
from ktrainer.machinery.operator import Operator, OperatorSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
DOMAIN = "copier.example"
ROLE, TO, COPIED = f"{DOMAIN}/role", f"{DOMAIN}/to", f"{DOMAIN}/copied"


class ConfigMap(CachedObject, gc=False, frozen=True, kw_only=True):
    """A ConfigMap with its data."""

    data: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it


@dataclass(frozen=True)
class Options:
    """What the program is told on its command line."""

    kubeconfig: Path
    namespace: str
    agent: str
    """Tells this process from all others in the audit log."""
    lease: str
    health_port: int
    workers: int
    delay: float
    """Seconds that a turn spends between its first write and the others."""


class Copier:
    """Keeps the copies."""

    def __init__(self, operator: Operator, options: Options) -> None:
        self._operator = operator
        self._client = operator.connection.client
        self._delay = options.delay
        view = View(CONFIGMAPS, ConfigMap, namespace=options.namespace, selectors=Selectors(labels=ROLE))
        informer = operator.informer(view)
        self._maps = informer.reader
        queue = operator.controller(ControllerSettings("copier", workers=options.workers), self.reconcile)
        informer.add_handler(MapFunc(queue, _sources_of))

    async def reconcile(self, key: ObjectKey) -> Result:
        """Make the copy, the token and the annotation of one source, as far as they are not there."""
        source = self._maps.get(key)
        if source is None or source.metadata.is_deleting or TO not in source.metadata.annotations:
            return Result()
        written = self._operator.written
        if written.stale(key, source.metadata.uid, self._operator.cache.resource_version_of):
            raise Stale("the last write is not in the cache yet")
        name = source.metadata.annotations[TO]
        copy = self._maps.get(ObjectKey(key.namespace, name))
        if copy is None or copy.data != source.data or not is_controlled_by(copy.metadata, source.metadata.uid):
            await self._apply_copy(source, name)
        await asyncio.sleep(self._delay)
        if self._maps.get(ObjectKey(key.namespace, f"{name}-token")) is None:
            await self._create_token(source, f"{name}-token")
        if source.metadata.annotations.get(COPIED) != source.data.get("text"):
            await self._annotate(source)
        return Result()

    async def _apply_copy(self, source: ConfigMap, name: str) -> None:
        body = _child(source, name, "copy", source.data)
        key = ObjectKey(source.metadata.namespace, name)
        self._note(source, await self._client.apply(CONFIGMAPS, key, body, field_manager="copier"))

    async def _create_token(self, source: ConfigMap, name: str) -> None:
        body = _child(source, name, "token", {"token": str(uuid.uuid4())})
        try:
            answer = await self._client.create(CONFIGMAPS, source.metadata.namespace, body)
        except AlreadyExists:
            # Ours from a try of which the answer was lost, or somebody else's.
            answer = await self._client.get(CONFIGMAPS, ObjectKey(source.metadata.namespace, name))
            if not is_controlled_by(_decoded(answer).metadata, source.metadata.uid):
                raise RetryableError(f"{name} exists and is not ours") from None
        self._note(source, answer)

    async def _annotate(self, source: ConfigMap) -> None:
        metadata = {
            "uid": source.metadata.uid,
            "resourceVersion": source.metadata.resource_version,
            "annotations": {COPIED: source.data.get("text", "")},
        }
        body = orjson.dumps({"metadata": metadata})
        self._note(source, await self._client.patch(CONFIGMAPS, source.key, body, PatchType.MERGE))

    def _note(self, source: ConfigMap, answer: bytes) -> None:
        version = _decoded(answer).metadata.resource_version
        self._operator.written.record(source.key, source.metadata.uid, CONFIGMAPS, version)


def _sources_of(obj: ConfigMap) -> Iterable[ObjectKey]:
    if obj.metadata.labels[ROLE] == "source":
        return [obj.key]
    owners = owners_of(obj.metadata, CONFIGMAPS.group_kind)
    return [ObjectKey(obj.metadata.namespace, owner.name) for owner in owners]


def _child(source: ConfigMap, name: str, role: str, data: dict[str, str]) -> bytes:
    owner = build_controller_reference(CONFIGMAPS.gvk, source.metadata)
    metadata = {"name": name, "labels": {ROLE: role}, "ownerReferences": [msgspec.to_builtins(owner)]}
    return orjson.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


def _decoded(answer: bytes) -> ConfigMap:
    try:
        return msgspec.json.decode(answer, type=ConfigMap)
    except msgspec.DecodeError as error:
        raise RetryableError(f"the answer is no ConfigMap: {error}") from error


def _parse_options() -> Options:
    parser = argparse.ArgumentParser(description="Keep copies of ConfigMaps in a namespace.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--lease", default="", help="without one there is no election")
    parser.add_argument("--health-port", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--delay", type=float, default=0.0)
    return Options(**vars(parser.parse_args()))


async def run(options: Options) -> None:
    """Copy until a signal comes."""
    settings = OperatorSettings(
        options.agent,
        namespace=options.namespace,
        lease_name=options.lease,
        health_address=f"127.0.0.1:{options.health_port}" if options.health_port else "0",
    )
    operator = Operator(load_config(options.kubeconfig, None), settings, writes=[CONFIGMAPS])
    Copier(operator, options)
    await operator.run()


if __name__ == "__main__":
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(default=str),
        ]
    )
    asyncio.run(run(_parse_options()))
