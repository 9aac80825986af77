"""From the bytes of one object to the object that caches keep.

One that cannot be read, or that is none of ours, affects itself only: it is passed over. Of one that is nested too deep
as much is kept as can be read, so that somebody can say what is wrong with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic

import msgspec

from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.cache.delta import Skip
from ktrainer.machinery.cache.objects import T, settle_identity
from ktrainer.machinery.cache.record import SkipReason
from ktrainer.machinery.cache.reflector.jsonparts import flattened, members_of
from ktrainer.machinery.cache.stringpool import StringPool

if TYPE_CHECKING:
    from ktrainer.kube.meta import ObjectMeta
    from ktrainer.machinery.cache.reflector.skips import Skips
    from ktrainer.machinery.cache.source import View

METADATA_KIND = ("meta.k8s.io/v1", "PartialObjectMetadata")
"""What objects say they are when only their metadata was asked for."""


class _Name(msgspec.Struct, gc=False):
    name: str
    namespace: str = ""


class _Named(msgspec.Struct, gc=False):
    metadata: _Name


class ObjectDecoder(Generic[T]):
    """Decodes the objects of one view."""

    def __init__(self, view: View[T], skips: Skips) -> None:
        self._transform = view.transform
        self._is_namespaced = view.resource.namespaced
        self._kind = (view.resource.api_version, view.resource.kind)
        self._sent_kind = METADATA_KIND if view.metadata_only else self._kind
        self._skips = skips
        self._pool = StringPool()
        self._decoder = msgspec.json.Decoder(view.object_type)

    def decode(self, document: bytes | msgspec.Raw) -> T | Skip:
        """Read an object that may leave out its kind, as in a list."""
        try:
            obj = self._decoder.decode(document)
        except RecursionError as error:
            return self.decode_deep(document, error, may_lack_kind=True)
        except ValueError as error:
            return self.skip_unreadable(document, error)
        return self.accept(obj, may_lack_kind=True)

    def decode_deep(self, document: bytes | msgspec.Raw, error: Exception, *, may_lack_kind: bool = False) -> T | Skip:
        """Read an object that is nested too deep, with a word in place of what is."""
        try:
            obj = self._decoder.decode(flattened(bytes(document)))
        except (ValueError, RecursionError):
            return self.skip_unreadable(document, error)
        return self.accept(obj, may_lack_kind=may_lack_kind)

    def accept(self, obj: T, *, may_lack_kind: bool = False) -> T | Skip:
        """Make an object that was just decoded ready for the store, if it is complete and of the right kind."""
        metadata = obj.metadata
        kind = (obj.api_version, obj.kind)
        is_ours = kind == self._sent_kind or (may_lack_kind and kind == ("", ""))
        if not is_ours or not _is_complete(metadata, self._is_namespaced):
            detail = f"it is a {obj.kind} of {obj.api_version}, version {metadata.resource_version!r}"
            self._skips.skip(SkipReason.WRONG_KIND, metadata.key, detail)
            return Skip(None)  # it says nothing about the object of ours that may have the same key
        settle_identity(obj, *self._kind, self._pool)
        if self._transform is None:
            return obj
        try:
            return self._transform(obj)
        except Exception as error:  # the transform is not ours, and one object must not stop the others
            return self._skips.skip(SkipReason.TRANSFORM, metadata.key, repr(error))

    def skip_unreadable(self, document: bytes | msgspec.Raw, error: Exception) -> Skip:
        """Pass over a document that is not an object as we know them."""
        return self._skips.skip(SkipReason.UNDECODABLE, _key_of(bytes(document)), str(error))


def _is_complete(metadata: ObjectMeta, is_namespaced: bool) -> bool:
    return bool(metadata.name and metadata.resource_version and bool(metadata.namespace) is is_namespaced)


def _key_of(document: bytes) -> ObjectKey | None:
    """The key of an object of which not much more can be read."""
    try:
        try:
            metadata = msgspec.json.decode(document, type=_Named).metadata
        except RecursionError:
            metadata = msgspec.json.decode(members_of(document).get("metadata", b""), type=_Name)
    except (ValueError, RecursionError):
        return None
    return ObjectKey(metadata.namespace, metadata.name)
