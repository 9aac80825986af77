"""Objects of the kind that the model API server serves, as caches keep them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from ktrainer.kube.meta import ObjectMeta, OwnerReference
from ktrainer.machinery.cache.objects import CachedObject

if TYPE_CHECKING:
    from collections.abc import Iterable


def widget(
    name: str = "a", namespace: str = "default", *, version: int = 1, spec: Any = None, **metadata: Any
) -> CachedObject:
    """A widget; keywords that are not named here are fields of its metadata."""
    metadata = {"uid": f"uid-{name}", **metadata}
    return CachedObject(
        api_version="example.com/v1",
        kind="Widget",
        metadata=ObjectMeta(name=name, namespace=namespace, resource_version=str(version), **metadata),
        spec=msgspec.Raw(json.dumps(spec).encode()),
    )


def owners(*names: str, kind: str = "Owner", api_version: str = "example.com/v1") -> Iterable[OwnerReference]:
    """References to owners of which the first is the controller."""
    return tuple(
        OwnerReference(api_version=api_version, kind=kind, name=name, uid=f"uid-{name}", controller=index == 0)
        for index, name in enumerate(names)
    )
