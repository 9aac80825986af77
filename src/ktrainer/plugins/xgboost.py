"""XGBoost: tells each worker where the tracker listens, which worker it is, and how many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.container import env_var
from ktrainer.framework.findings import Findings
from ktrainer.framework.plugin import CustomValidationPlugin, EnforceMLPolicyPlugin
from ktrainer.framework.rendezvous import TRAINER_PORT, rank_env_var
from ktrainer.framework.resources import gpu_count_of
from ktrainer.kube import fields
from ktrainer.kube.fields import Path

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info

TRACKER_URI: Final = "DMLC_TRACKER_URI"
TRACKER_PORT: Final = "DMLC_TRACKER_PORT"
TASK_ID: Final = "DMLC_TASK_ID"
NUM_WORKER: Final = "DMLC_NUM_WORKER"
RESERVED: Final = (TRACKER_URI, TRACKER_PORT, TASK_ID, NUM_WORKER)


class XGBoost(CustomValidationPlugin, EnforceMLPolicyPlugin):
    """Sets up runtimes with the policy `xgboost`."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Needs nothing."""

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Refuse variables that are ours to set."""
        if not info.ml_policy or info.ml_policy.xgboost is None:
            return Findings()
        path = Path("spec.trainer.env")
        return Findings(
            [
                fields.forbidden(path.index(position), f"{entry['name']} is set by the runtime")
                for position, entry in enumerate(trainer_of(new).env)
                if entry.get("name") in RESERVED
            ]
        )

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Set the variables and open the port, on the training container; each GPU has a worker of its own."""
        if not info.ml_policy or info.ml_policy.xgboost is None:
            return
        pods, container = info.trainer, info.trainer_container
        if pods and container:
            workers = pods.count * max(1, gpu_count_of(info.node_resources))
            container.set_env(
                env_var(TRACKER_URI, pods.first_endpoint),
                env_var(TRACKER_PORT, str(TRAINER_PORT)),
                rank_env_var(TASK_ID),
                env_var(NUM_WORKER, str(workers)),
            )
            container.expose(TRAINER_PORT)
