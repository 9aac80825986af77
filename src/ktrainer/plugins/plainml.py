"""Counts the nodes where the framework does not count them itself: the TrainJob's number goes before the runtime's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.plugin import EnforceMLPolicyPlugin

if TYPE_CHECKING:
    from ktrainer.api.trainingruntime import MlPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info


class PlainML(EnforceMLPolicyPlugin):
    """Sizes the trainer's job."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Needs nothing."""

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Take over `numNodes` of the TrainJob."""
        if info.trainer and (wanted := trainer_of(trainjob).num_nodes) and not _is_counted_elsewhere(info.ml_policy):
            info.trainer.count = wanted


def _is_counted_elsewhere(policy: MlPolicy | None) -> bool:
    # Not left to the order of plugins, which the configuration may change: under MPI the trainer is one launcher.
    return policy is not None and (policy.torch is not None or policy.mpi is not None or policy.jax is not None)
