"""The metadata of an object, typed and small, as caches keep it by the thousand.

Only what a controller reads is here: fields that are not listed, above all `managedFields`, are skipped while parsing
and never allocated. Values are shared between readers, hence frozen; the maps inside must not be written to either.
"""

from __future__ import annotations

import msgspec

from ktrainer.kube.identity import GroupVersionKind, ObjectKey


class OwnerReference(msgspec.Struct, rename="camel", gc=False, frozen=True, omit_defaults=True):
    """One entry of `ownerReferences`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False

    @property
    def gvk(self) -> GroupVersionKind:
        """The owner's kind, in the version that the writer used."""
        return GroupVersionKind.parse(self.api_version, self.kind)


class ObjectMeta(msgspec.Struct, rename="camel", gc=False, frozen=True, omit_defaults=True):
    """The `metadata` of an object; a field that is absent has its empty value."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    """Opaque but ordered: compare with `ktrainer.kube.resourceversion`."""
    generation: int = 0
    creation_timestamp: str | None = None
    """RFC 3339 as received. API servers before 1.34 send null at the admission of a create."""
    deletion_timestamp: str | None = None
    """Set once a delete was asked for; the object then only waits for its finalizers."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> ObjectKey:
        """The object's key within its resource."""
        return ObjectKey(self.namespace, self.name)

    @property
    def is_deleting(self) -> bool:
        """Whether the object's deletion has begun."""
        return self.deletion_timestamp is not None
