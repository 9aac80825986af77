"""What a plugin builds: objects, and how each is to be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import TRAINJOB_NAME
from ktrainer.api.resources import TRAINJOBS
from ktrainer.kube.access import Access

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject

# Some clusters let only those set blockOwnerDeletion who may change the owner's finalizers.
ACCESS: Final = (Access(TRAINJOBS, ("update",), subresource="finalizers", is_implied=True),)


class Write(Enum):
    """How an object gets to the API server."""

    APPLY = "apply"
    """Server-side apply; the body is all that we want of the object."""
    CREATE = "create"
    """Created once and never changed: what is there already stays, if the TrainJob controls it. For generated keys."""
    PATCH = "patch"
    """JSON merge patch of an object that is there; the body holds only what changes."""


@dataclass(frozen=True, slots=True)
class Fallback:
    """What is done where an object that is there refuses to change something that is immutable."""

    renews: bool = False
    """Whether the object is deleted and made anew."""
    body: JsonObject | None = None
    """What is applied otherwise, with the resourceVersion that it is for; none where all of it is there already."""
    reason: str = ""
    """What the object lacks then, in words."""


@dataclass(frozen=True, slots=True)
class Component:
    """An object that a TrainJob needs."""

    resource: Resource
    body: JsonObject
    """The object, with kind, name and namespace."""
    write: Write = Write.APPLY
    fallback: Callable[[JsonObject, str], Fallback | None] | None = field(default=None, compare=False)
    """Asked where an apply is refused, with the object that is there and the name that we write by; it answers none
    where that object is not the one that was planned for. None of itself where a refusal is the end of it."""

    @property
    def name(self) -> str:
        """The name of the object."""
        name: str = self.body["metadata"]["name"]
        return name


def is_controlled(obj: JsonObject, uid: str) -> bool:
    """Whether the TrainJob of this uid, not a namesake, controls an object."""
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def is_made(obj: JsonObject | None, trainjob: TrainJob) -> bool:
    """Whether something generated is there already. A foreign object of its name is not it: writing tells of that."""
    return obj is not None and is_controlled(obj, trainjob.metadata.uid)


def new_object(resource: Resource, trainjob: TrainJob, name: str) -> JsonObject:
    """An object in the TrainJob's namespace, controlled by it and with our label; the rest is the caller's to add."""
    metadata = trainjob.metadata
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {
            "name": name,
            "namespace": metadata.namespace,
            "labels": {TRAINJOB_NAME: metadata.name},
            "ownerReferences": [
                {
                    "apiVersion": TRAINJOBS.api_version,
                    "kind": TRAINJOBS.kind,
                    "name": metadata.name,
                    "uid": metadata.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
    }
