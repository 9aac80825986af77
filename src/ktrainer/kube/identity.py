"""What names a kind, a resource and an object: plain values that are safe as keys of maps.

A `Resource` also knows its URL path on an API server, since the path is nothing but its names in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

_DOT_SEGMENTS: Final = frozenset({".", ".."})


class GroupKind(NamedTuple):
    """A kind regardless of its version, as owner references are matched."""

    group: str
    kind: str

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}" if self.group else self.kind


class GroupVersionKind(NamedTuple):
    """A kind in one version; the core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def parse(cls, api_version: str, kind: str) -> GroupVersionKind:
        """Split an object's `apiVersion`; never raises, since an owner reference may hold anything."""
        group, slash, version = api_version.partition("/")
        return cls(group, version, kind) if slash else cls("", api_version, kind)

    @property
    def api_version(self) -> str:
        """The value of an object's `apiVersion` field."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def group_kind(self) -> GroupKind:
        """The same kind without its version."""
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        return f"{self.api_version}, Kind={self.kind}"


class ObjectKey(NamedTuple):
    """What identifies an object of a known resource; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """Read `namespace/name` or `name`; raises ValueError for anything else."""
        namespace, slash, name = text.rpartition("/")
        if not name or "/" in namespace or (slash and not namespace):
            raise ValueError(f"not a key of the form namespace/name or name: {text!r}")
        return cls(namespace, name)

    @property
    def may_exist(self) -> bool:
        """Whether there can be an object of this name: of some that people write, a path cannot even be made."""
        return bool(self.name) and _DOT_SEGMENTS.isdisjoint(self)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as an API server serves it."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in objects of this resource."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind of this resource's objects."""
        return GroupVersionKind(self.group, self.version, self.kind)

    @property
    def group_kind(self) -> GroupKind:
        """The kind of this resource's objects, regardless of the version."""
        return GroupKind(self.group, self.kind)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of one object, of its subresource, or of a collection (all namespaces where none is given).

        Raises ValueError for names that do not fit the scope or would leave their place in the path.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.plural} are not namespaced, but a namespace is given: {namespace!r}")
        if name and self.namespaced and not namespace:
            raise ValueError(f"{self.plural} are namespaced, but {name!r} comes without a namespace")
        if subresource and not name:
            raise ValueError(f"the subresource {subresource!r} needs the name of an object")
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


def _segment(name: str) -> str:
    # Quoting leaves dots alone, and HTTP clients and proxies resolve dot segments: `..` would name another resource.
    if name in _DOT_SEGMENTS:
        raise ValueError(f"not a name: {name!r}")
    return quote(name, safe="")
