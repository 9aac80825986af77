"""Objects as caches keep them: typed metadata, and the rest as bytes until somebody looks.

One object serves all readers for as long as it is current, so nothing of it may be changed: the structs are frozen and
`spec` and `status` are bytes, of which every decoding is a fresh value. Only the maps in the metadata could be written
to, and must not be: whoever wants to change them makes a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Raw
from msgspec.structs import force_setattr

from ktrainer.kube.meta import ObjectMeta  # noqa: TC001 - msgspec reads the annotations at run time

if TYPE_CHECKING:
    from ktrainer.kube.identity import ObjectKey
    from ktrainer.machinery.cache.stringpool import StringPool

_NOTHING = Raw(b"")


class CachedObject(msgspec.Struct, gc=False, frozen=True, rename="camel", kw_only=True):
    """An object of any kind; a kind of which more than spec and status is needed gets a subclass with those fields.

    A subclass that adds a `Raw` field copies it in `__post_init__` like this one: what a decoder hands out is a view
    that would keep the whole line or page alive.
    """

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta
    spec: Raw = _NOTHING
    """JSON, or nothing at all where the object has no spec."""
    status: Raw = _NOTHING
    """JSON, or nothing at all where the object has no status."""

    def __post_init__(self) -> None:
        force_setattr(self, "spec", self.spec.copy())
        force_setattr(self, "status", self.status.copy())

    @property
    def key(self) -> ObjectKey:
        """The object's key within its resource."""
        return self.metadata.key


T = TypeVar("T", bound=CachedObject)


def decoded(raw: Raw) -> Any:
    """The value of a `spec` or `status`, fresh at every call and the caller's to change; None where there is none.

    Raises ValueError for bytes that are not JSON, which are passed over while an object is received.
    """
    return msgspec.json.decode(raw) if raw else None


def is_same_version(old: CachedObject, new: CachedObject) -> bool:
    """Whether an update brings nothing new, because it comes from a resync or from listing again."""
    return old.metadata.resource_version == new.metadata.resource_version


def settle_identity(obj: CachedObject, api_version: str, kind: str, pool: StringPool) -> None:
    """Give an object that nobody else has seen yet the kind that it was asked for as, and shared strings.

    Items of a list may lack their kind, and objects reduced to their metadata claim to be of another.
    """
    metadata = obj.metadata
    force_setattr(obj, "api_version", api_version)
    force_setattr(obj, "kind", kind)
    force_setattr(metadata, "namespace", pool.share(metadata.namespace))
    if metadata.labels:
        force_setattr(metadata, "labels", pool.share_keys(metadata.labels))
    if metadata.annotations:
        force_setattr(metadata, "annotations", pool.share_keys(metadata.annotations))
