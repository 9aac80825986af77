"""Counts the nodes of any job, whatever framework it uses: the TrainJob's number goes before the runtime's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.plugin import EnforceMLPolicyPlugin

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info


class PlainML(EnforceMLPolicyPlugin):
    """Sizes the trainer's job."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Needs nothing."""

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Take over `numNodes` of the TrainJob."""
        if info.trainer and (wanted := trainer_of(trainjob).num_nodes):
            info.trainer.count = wanted
