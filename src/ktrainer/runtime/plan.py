"""What is to be done for a TrainJob: the answer of a runtime to its reconciler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ktrainer.api.trainingruntime import RunPolicy
    from ktrainer.framework.component import Component


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The objects that a TrainJob needs, and what its status has to say about them."""

    components: tuple[Component, ...]
    """In the order in which they must be written: the snapshot goes first."""
    runtime_digest: str
    """The digest of the snapshot."""
    run_policy: RunPolicy
    """The runtime's defaults for deadline and time to live."""
    sized_job: str | None = None
    """The replicated job that `numNodes` counts the pods of."""
    nodes: int = 0
    """How many pods that job has."""
    waits_for: str = ""
    """What is not among the objects yet, and what it waits for, in words; nothing where all is."""
    refused: str = ""
    """What is not among the objects since it was refused for good, in words; nothing where all is."""
    warnings: list[str] = field(default_factory=list)
    """What somebody should know; nothing that keeps the objects from being written."""
