"""What the manager sees of a cluster: from caches what it watches, and live what it does not or must be sure of.

One view of each resource, whoever asks for it: controllers, webhook and progress server share them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import msgspec
import orjson
from msgspec import Raw
from msgspec.structs import force_setattr, replace

from ktrainer.api.labels import TRAINJOB_NAME
from ktrainer.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    SECRETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
)
from ktrainer.client.selectors import EVERYTHING, Selectors
from ktrainer.framework.watch import Concerns
from ktrainer.kube.access import Access
from ktrainer.kube.errors import NotFound
from ktrainer.kube.identity import ObjectKey
from ktrainer.kube.owners import owners_of
from ktrainer.machinery.cache.objects import CachedObject, decoded
from ktrainer.machinery.cache.source import View

if TYPE_CHECKING:
    from ktrainer.framework.watch import Watch
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.machinery.cache.informer import Informer
    from ktrainer.machinery.operator import Operator

_NOTHING: Final = Raw(b"")
_POOLED: Final = 256
"""How many different data of ConfigMaps are looked out for."""
_OURS: Final = Selectors(labels=TRAINJOB_NAME)
ACCESS: Final = tuple(
    Access(resource, ("get", "list", "watch")) for resource in (TRAINJOBS, TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES)
)


class CachedData(CachedObject, gc=False, frozen=True, kw_only=True):
    """A ConfigMap or Secret, of which the data matters."""

    data: Raw = _NOTHING

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "data", self.data.copy())


class _DataPool:
    """One copy of data that many ConfigMaps have in common: thousands of snapshots are of a few runtimes.

    A pool that is full starts afresh, so that it follows the times.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Raw] = {}

    def share(self, config_map: CachedData) -> CachedData:
        """Give a ConfigMap that nobody else has seen yet the data that others have, if it is equal."""
        if len(self._known) >= _POOLED:
            self._known.clear()
        digest = hashlib.blake2b(config_map.data, digest_size=16).digest()
        force_setattr(config_map, "data", self._known.setdefault(digest, config_map.data))
        return config_map


class ClusterView:
    """The informers of the manager by resource, and the framework's Reader over them."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self._informers: dict[tuple[Resource, ObjectKey | None], Informer[Any]] = {}
        """By resource, and by key where an informer shows one object alone."""
        self.trainjobs: Informer[CachedObject] = self._add(View(TRAINJOBS, CachedObject))
        self.training_runtimes: Informer[CachedObject] = self._add(View(TRAINING_RUNTIMES, CachedObject))
        self.cluster_training_runtimes: Informer[CachedObject] = self._add(
            View(CLUSTER_TRAINING_RUNTIMES, CachedObject)
        )

    def follow(self, watch: Watch) -> Informer[Any]:
        """Watch what a plugin or a runtime wants to hear of; call it before the start. The same watch is there once."""
        known = self._informers.get((watch.resource, watch.key))
        return known or self._add(_view_of(watch), watch.key)

    async def fetch(self, resource: Resource, namespace: str, name: str, *, live: bool = False) -> JsonObject | None:
        """The object, fresh and the caller's to change; none where there is none.

        Raises ApiError and TransportError when the API server has to be asked and cannot be, and CacheError before
        the caches are complete.
        """
        key = ObjectKey(namespace if resource.namespaced else "", name)
        informer = self._informers.get((resource, key)) or self._informers.get((resource, None))
        if informer is None or live:
            return await self._fetch_live(resource, key)
        cached: CachedObject | None = informer.reader.get(key)
        return None if cached is None else value_of(cached)

    async def _fetch_live(self, resource: Resource, key: ObjectKey) -> JsonObject | None:
        if not key.may_exist:
            return None
        try:
            value: JsonObject = orjson.loads(await self._operator.connection.client.get(resource, key))
        except NotFound:
            return None
        return value

    def _add(self, view: View[Any], key: ObjectKey | None = None) -> Informer[Any]:
        informer = self._operator.informer(view)
        self._informers[view.resource, key] = informer
        return informer


def value_of(cached: CachedObject) -> JsonObject:
    """A cached object as plain JSON: a fresh value."""
    value: JsonObject = {
        "apiVersion": cached.api_version,
        "kind": cached.kind,
        # Through bytes, since the lists in it are tuples otherwise.
        "metadata": msgspec.json.decode(msgspec.json.encode(cached.metadata)),
    }
    parts = {"spec": cached.spec, "status": cached.status}
    if isinstance(cached, CachedData):
        parts["data"] = cached.data
    value.update({field: decoded(raw) for field, raw in parts.items() if raw})
    return value


def _view_of(watch: Watch) -> View[Any]:
    if watch.key is not None:
        return _view_of_one(watch, watch.key)
    selectors = _OURS if watch.labelled else EVERYTHING
    if watch.resource == CONFIG_MAPS:
        return View(CONFIG_MAPS, CachedData, selectors=selectors, transform=_DataPool().share)
    if watch.resource == SECRETS:
        # That it is there is all that we want to know of a Secret: keys have no business in a cache.
        return View(SECRETS, CachedObject, selectors=selectors, metadata_only=True)
    is_owned = watch.concerns is Concerns.OWNER and not watch.labelled
    return View(
        watch.resource,
        CachedObject,
        selectors=selectors,
        is_optional=watch.optional,
        transform=_without_foreign if is_owned else None,
    )


def _view_of_one(watch: Watch, key: ObjectKey) -> View[Any]:
    selectors = Selectors(fields=f"metadata.name={key.name}")
    if watch.resource == SECRETS:
        return View(SECRETS, CachedData, namespace=key.namespace, selectors=selectors, transform=_only_certificates)
    return View(watch.resource, CachedObject, namespace=key.namespace, selectors=selectors, is_optional=watch.optional)


def _only_certificates(secret: CachedData) -> CachedData:
    """Keep nothing that is secret: keys have no business in a cache, nor have annotations that may repeat them."""
    data = decoded(secret.data) or {}
    certificates = {name: value for name, value in data.items() if name.endswith(".crt")}
    metadata = replace(secret.metadata, annotations={})
    return replace(secret, metadata=metadata, data=Raw(msgspec.json.encode(certificates)))


def _without_foreign(obj: CachedObject) -> CachedObject:
    """Keep no more than the name of what no TrainJob controls: there may be thousands of them."""
    if owners_of(obj.metadata, TRAINJOBS.group_kind, only_controller=True):
        return obj
    meta = obj.metadata
    bare = replace(meta, labels={}, annotations={}, owner_references=(), finalizers=())
    return replace(obj, metadata=bare, spec=_NOTHING, status=_NOTHING)
