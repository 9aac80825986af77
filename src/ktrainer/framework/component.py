"""What a plugin builds: objects, and how each is to be written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ktrainer.api.labels import TRAINJOB_NAME
from ktrainer.api.resources import TRAINJOBS

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject


class Write(Enum):
    """How an object gets to the API server."""

    APPLY = "apply"
    """Server-side apply; the body is all that we want of the object."""
    CREATE = "create"
    """Created once and never changed: what is there already stays, if the TrainJob controls it. For generated keys."""
    PATCH = "patch"
    """JSON merge patch of an object that is there; the body holds only what changes."""


@dataclass(frozen=True, slots=True)
class Component:
    """An object that a TrainJob needs."""

    resource: Resource
    body: JsonObject
    """The object, with kind, name and namespace."""
    write: Write = Write.APPLY

    @property
    def name(self) -> str:
        """The name of the object."""
        name: str = self.body["metadata"]["name"]
        return name


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
