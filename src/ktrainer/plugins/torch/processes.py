"""How many processes run on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.resources import cpu_count_of, gpu_count_of

if TYPE_CHECKING:
    from ktrainer.api.trainingruntime import TorchPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.jsonvalue import JsonObject


def wanted_processes_of(policy: TorchPolicy, trainjob: TrainJob) -> int | str:
    """What is asked for: a number or a word, by the TrainJob, else by the runtime, else `auto`."""
    wanted = trainer_of(trainjob).num_proc_per_node
    if wanted is not None:
        return wanted
    return policy.num_proc_per_node if policy.num_proc_per_node is not None else "auto"


def processes_of(wanted: int | str, resources: JsonObject) -> int | str:
    """What torchrun is told: words stay words where it can count the GPUs by itself."""
    if wanted == "cpu" or (wanted == "auto" and not gpu_count_of(resources)):
        return max(1, cpu_count_of(resources))
    return wanted
