"""What travels through the phases: the runtime's template with the TrainJob's changes, and what plugins make of it.

An Info is made anew for every pass and belongs to whoever holds it: plugins change it freely. The policies in it are
frozen models; nothing in it is shared with a cache.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ktrainer.api.labels import Ancestor
from ktrainer.framework.container import EnvLog
from ktrainer.framework.podset import NODE

if TYPE_CHECKING:
    from ktrainer.api.trainingruntime import MlPolicy, PodGroupPolicy
    from ktrainer.framework.container import Container
    from ktrainer.framework.podset import PodSet
    from ktrainer.kube.jsonvalue import JsonObject


@dataclass(slots=True, eq=False, kw_only=True)
class Info:
    """All that a plugin needs to know about a job, and may change."""

    template: JsonObject
    """The spec of the JobSet to be."""
    pod_sets: list[PodSet]
    """A view of each replicated job of the template, in its order."""
    ml_policy: MlPolicy | None = None
    """What the runtime says about the framework; none where it has no such policy."""
    pod_group_policy: PodGroupPolicy | None = None
    """What the runtime says about gang scheduling; none where it has no such policy."""
    labels: dict[str, str] = field(default_factory=dict)
    """The labels of the JobSet."""
    annotations: dict[str, str] = field(default_factory=dict)
    """The annotations of the JobSet."""
    pod_labels: dict[str, str] = field(default_factory=dict)
    """Labels for the pods of the gang, set by scheduler plugins."""
    pod_annotations: dict[str, str] = field(default_factory=dict)
    """Annotations for the pods of the gang, set by scheduler plugins."""
    command: list[str] | None = None
    """What the training container runs; none for what the template says, empty for what the image says."""
    args: list[str] | None = None
    """The arguments of the training container; none and empty as for the command."""
    node_resources: JsonObject = field(default_factory=dict)
    """The ResourceRequirements of a training node: those of the runtime with the TrainJob's merged over them."""
    trainer: PodSet | None = field(init=False)
    """The pods of the first job whose ancestor is the trainer."""
    sized: PodSet | None = field(init=False)
    """The pods that `numNodes` counts: those of the job `node` under MPI, and else the trainer's; none where there is
    no such job."""
    waits_for: str = ""
    """What of the wanted waits for something else to happen first, in words; set by what builds it."""
    refused: str = ""
    """What of the wanted was refused for good, in words; set by what builds it."""
    env_log: EnvLog = field(default_factory=EnvLog)
    """Which plugin set which variable; the framework keeps it."""

    def __post_init__(self) -> None:
        self.trainer = next((pods for pods in self.pod_sets if pods.ancestor == Ancestor.TRAINER), None)
        self.sized = self.trainer

    @property
    def trainer_container(self) -> Container | None:
        """The container that trains."""
        return self.trainer.container(NODE) if self.trainer else None

    def pod_set(self, name: str) -> PodSet | None:
        """The pods of the replicated job of a name."""
        return next((pods for pods in self.pod_sets if pods.name == name), None)
