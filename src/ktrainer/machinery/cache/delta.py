"""What a reflector tells the rest of its informer, in the order in which it happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeAlias

import msgspec

from ktrainer.machinery.cache.objects import T

if TYPE_CHECKING:
    from collections.abc import Set

    from ktrainer.kube.identity import ObjectKey


class Put(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object that is there now, be it new or changed."""

    obj: T


class Removal(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """An object that is gone."""

    key: ObjectKey
    obj: T | None
    """Its last state; None where that could not be decoded."""


class Bookmark(msgspec.Struct, frozen=True, gc=False):
    """All changes up to a resourceVersion have been told; never about an object."""

    resource_version: str
    ends_initial_events: bool
    """Whether the state that was asked for at the beginning of the stream is complete."""


class Skip(msgspec.Struct, frozen=True, gc=False):
    """Something that is no object of ours, or one that we cannot read: it changes nothing, not even the version."""

    key: ObjectKey | None
    """The object of ours that it was about, if that can be told."""


class Snapshot(msgspec.Struct, Generic[T], frozen=True):
    """The whole state of the server, which replaces all that was known before."""

    objects: dict[ObjectKey, T]
    unreadable: Set[ObjectKey]
    """Objects that are there, but not among `objects`: what was known of them before stays."""
    resource_version: str
    mark: int | None
    """Of a quorum read: what `WrittenVersions.mark` said before it began. None where older state may have been read."""


class Resync(msgspec.Struct, frozen=True, gc=False):
    """Time to show the handlers everything again."""


class Absent(msgspec.Struct, frozen=True, gc=False):
    """The server does not know the kind, and nobody insists that it must: there is nothing to wait for."""


Event: TypeAlias = Put[T] | Removal[T] | Bookmark | Skip
"""What one line of a watch means."""
