"""Whether an object is too large to be stored, judged before it is sent. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.controllers.trainjob.verdict import ObjectTooLarge

if TYPE_CHECKING:
    from ktrainer.framework.component import Component

OBJECT_BYTES: Final = 1_572_864
"""What etcd takes by default, in all."""
DATA_BYTES: Final = 1_048_576
"""What a ConfigMap or Secret may hold."""
ANNOTATION_BYTES: Final = 262_144
"""What the annotations of an object may have in all, names and values."""


def check_size(component: Component, body: bytes) -> None:
    """Raise ObjectTooLarge for an object that no server would store."""
    if len(body) > OBJECT_BYTES:
        raise ObjectTooLarge(component.resource, component.name, len(body), OBJECT_BYTES)
    data = sum(len(value.encode()) for value in component.body.get("data", {}).values())
    if data > DATA_BYTES:
        raise ObjectTooLarge(component.resource, component.name, data, DATA_BYTES)
    annotations = component.body["metadata"].get("annotations") or {}
    size = sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())
    if size > ANNOTATION_BYTES:
        raise ObjectTooLarge(component.resource, component.name, size, ANNOTATION_BYTES, "of annotations")
