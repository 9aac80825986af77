"""JAX: tells each process how many there are, which it is, and where the coordinator listens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.container import env_var
from ktrainer.framework.findings import Findings
from ktrainer.framework.plugin import CustomValidationPlugin, EnforceMLPolicyPlugin
from ktrainer.framework.rendezvous import TRAINER_PORT, rank_env_var

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info

NUM_PROCESSES: Final = "JAX_NUM_PROCESSES"
PROCESS_ID: Final = "JAX_PROCESS_ID"
COORDINATOR_ADDRESS: Final = "JAX_COORDINATOR_ADDRESS"
RESERVED: Final = (NUM_PROCESSES, PROCESS_ID, COORDINATOR_ADDRESS)


class Jax(CustomValidationPlugin, EnforceMLPolicyPlugin):
    """Sets up runtimes with the policy `jax`."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Needs nothing."""

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Warn of variables that the TrainJob overrides; the original lets them pass, so they are not refused."""
        if not info.ml_policy or info.ml_policy.jax is None:
            return Findings()
        taken = [entry["name"] for entry in trainer_of(new).env if entry.get("name") in RESERVED]
        return Findings(warnings=[f"spec.trainer.env: {name} replaces what the runtime sets" for name in taken])

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Set the variables and open the port, on the training container."""
        if not info.ml_policy or info.ml_policy.jax is None:
            return
        pods, container = info.trainer, info.trainer_container
        if pods and container:
            container.set_env(
                env_var(NUM_PROCESSES, str(pods.count)),
                rank_env_var(PROCESS_ID),
                env_var(COORDINATOR_ADDRESS, f"{pods.first_endpoint}:{TRAINER_PORT}"),
            )
            container.expose(TRAINER_PORT)
