"""Sets up NCCL on training nodes that have GPUs: which network interface it takes, and enough shared memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.framework.container import env_var
from ktrainer.framework.findings import Findings
from ktrainer.framework.plugin import CustomValidationPlugin, EnforceMLPolicyPlugin
from ktrainer.framework.resources import gpu_count_of
from ktrainer.kube import fields
from ktrainer.kube.fields import Path

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info

INTERFACE = "NCCL_SOCKET_IFNAME"


class Nccl(CustomValidationPlugin, EnforceMLPolicyPlugin):
    """Applies to every job whose nodes have GPUs, whatever framework it uses."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Needs nothing from outside."""

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Refuse the variable that is ours to set."""
        env = new.spec.trainer.env if new.spec.trainer else []
        if gpu_count_of(info.node_resources) and any(entry["name"] == INTERFACE for entry in env):
            return Findings([fields.forbidden(Path("spec.trainer.env"), f"{INTERFACE} is set by the plugin nccl")])
        return Findings()

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Change the pods of the trainer's job."""
        pods, container = info.trainer, info.trainer_container
        if pods is None or container is None or not gpu_count_of(info.node_resources):
            return
        container.set_env(env_var(INTERFACE, "eth0"))
        pods.add_volumes({"name": "shared-memory", "emptyDir": {"medium": "Memory"}})
        container.add_mounts({"name": "shared-memory", "mountPath": "/dev/shm"})  # noqa: S108 - where shared memory is
