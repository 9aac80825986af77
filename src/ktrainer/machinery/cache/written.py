"""Seeing one's own writes: whether a cache has caught up with what was written for an owner.

A reconciler that acts on a state from before its last write creates things twice. So it notes the version of every
write, and does not act for that owner until the cache shows at least that version. Nothing is waited for that may never
come: versions that cannot be compared count as seen, and so does all that was written before a quorum read began, or of
a kind that is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from prometheus_client import Counter

from ktrainer.kube.resourceversion import Order, compare

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from prometheus_client import CollectorRegistry

    from ktrainer.kube.identity import ObjectKey, Resource


class _Write(NamedTuple):
    version: str
    mark: int
    """How many writes had been noted, of whatever owner and resource, when this one was."""


class _Scope(NamedTuple):
    owner_uid: str
    resource: Resource


class WrittenVersions:
    """The newest version written for each owner, by resource. Plain functions, hence atomic."""

    def __init__(self, registry: CollectorRegistry, resources: Iterable[Resource]) -> None:
        """`resources` are those of which writes will be noted."""
        self._writes: dict[ObjectKey, dict[_Scope, tuple[_Write, ...]]] = {}
        """By owner's key: what the cache is not known to have seen, the newest version as a rule.

        Versions that went down are kept apart, each with its mark: the server was restored, and a quorum read that
        began in between settles the higher one only.
        """
        self._count = 0
        """How many writes have been noted so far."""
        self._skips = Counter(
            "stale_sync_skips",
            "Reconciles that were put off because the cache had not caught up with our own writes.",
            ("group", "resource"),
            registry=registry,
        )
        for resource in resources:
            self._skips.labels(resource.group, resource.plural)

    def __len__(self) -> int:
        return len(self._writes)

    def record(self, owner: ObjectKey, owner_uid: str, resource: Resource, resource_version: str) -> None:
        """Note that an object of `resource` was written for the owner, and which version the server answered.

        For objects that the cache will show. Of one that its selectors leave out it hears by bookmarks only, and that
        late.
        """
        self._count += 1
        scopes, scope = self._writes.setdefault(owner, {}), _Scope(owner_uid, resource)
        higher = (write for write in scopes.get(scope, ()) if compare(write.version, resource_version) is Order.NEWER)
        scopes[scope] = (*higher, _Write(resource_version, self._count))

    def stale(self, owner: ObjectKey, owner_uid: str, version_of: Callable[[Resource], str]) -> Resource | None:
        """Return a resource whose cache, at `version_of` it, has not seen what was written for the owner, if any."""
        for scope, writes in [*self._writes.get(owner, {}).items()]:
            if scope.owner_uid != owner_uid:
                continue
            version, resource = version_of(scope.resource), scope.resource
            unseen = [write for write in writes if compare(version, write.version) is Order.OLDER]
            if self._keep(owner, scope, unseen):
                self._skips.labels(resource.group, resource.plural).inc()
                return resource
        return None

    def forget_owner(self, owner: ObjectKey) -> None:
        """Drop what was noted for an owner that is gone, and for any of its name that went before it."""
        self._writes.pop(owner, None)

    def mark(self) -> int:
        """Return a mark of this moment, to be taken before a quorum read."""
        return self._count

    def relisted(self, resource: Resource, mark: int) -> None:
        """Forget the writes of a resource that were noted before the mark: a quorum read has seen them, or never will.

        The latter happens when the server's database was restored, and versions begin again at a lower number.
        """
        for owner, scopes in [*self._writes.items()]:
            for scope, writes in [*scopes.items()]:
                if scope.resource == resource:
                    self._keep(owner, scope, [write for write in writes if write.mark > mark])

    def _keep(self, owner: ObjectKey, scope: _Scope, unseen: list[_Write]) -> bool:
        """Keep only these writes of a scope; return whether there are any."""
        scopes = self._writes[owner]
        if unseen:
            scopes[scope] = tuple(unseen)
        else:
            del scopes[scope]
        if not scopes:
            del self._writes[owner]
        return bool(unseen)
