"""What must be watched beside TrainJobs, and which TrainJobs a change there concerns: data that plugins declare."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrainer.kube.identity import ObjectKey, Resource


class Concerns(Enum):
    """The TrainJobs that a change of an object concerns."""

    OWNER = "owner"
    """The one that controls the object."""
    SUSPENDED_IN_NAMESPACE = "suspended-in-namespace"
    """The suspended ones in the object's namespace."""
    SUSPENDED_WITH_RUNTIME_CLASS = "suspended-with-runtime-class"
    """The suspended ones whose runtime names the object as runtime class of its pods."""
    UNFINISHED = "unfinished"
    """All that have not finished."""


@dataclass(frozen=True, slots=True)
class Watch:
    """A resource to watch."""

    resource: Resource
    concerns: Concerns = Concerns.OWNER
    optional: bool = False
    """Whether the kind may be missing in the cluster; it is picked up when it is installed later."""
    labelled: bool = False
    """Whether only objects with our label are of interest, and the API server shall send no others."""
    key: ObjectKey | None = None
    """The only object that is of interest, where there is just one. Of a Secret no more than certificates is kept."""
