"""The plugin for runtimes with the policy `torch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.labels import Ancestor
from ktrainer.framework.container import env_var
from ktrainer.framework.findings import Findings
from ktrainer.framework.nodes import node_bounds_of
from ktrainer.framework.plugin import ComponentBuilderPlugin, CustomValidationPlugin, EnforceMLPolicyPlugin
from ktrainer.framework.podset import NODE
from ktrainer.framework.rendezvous import TRAINER_PORT, rank_env_var
from ktrainer.framework.reserved import refuse_reserved
from ktrainer.framework.resources import gpu_count_of
from ktrainer.framework.userenv import env_of
from ktrainer.kube import fields
from ktrainer.kube.fields import Path
from ktrainer.plugins.torch import elastic, names, tune
from ktrainer.plugins.torch.processes import processes_of, wanted_processes_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ktrainer.api.trainingruntime import TorchPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.component import Component
    from ktrainer.framework.container import Container
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject


class Torch(CustomValidationPlugin, EnforceMLPolicyPlugin, ComponentBuilderPlugin):
    """Tells torchrun how many nodes and processes there are, and where they meet."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Needs nothing."""

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Refuse what torchrun or TorchTune could not do, and variables that are ours to set."""
        policy = _policy(info)
        if policy is None:
            return Findings()
        bounds = node_bounds_of(info.ml_policy)
        errors = _validate_injection(info, policy, new)
        errors += refuse_reserved(new, names.RESERVED if bounds is None else names.RESERVED_ELASTIC)
        if tune.is_tune(new.spec.trainer):
            errors += tune.validate_tune(info, new, wanted_processes_of(policy, new))
        if bounds is None or policy.elastic_policy is None:
            return Findings(errors)
        # An elastic job that has begun keeps within its bounds by itself.
        misfits = elastic.validate_nodes(new, bounds)
        return Findings(errors, elastic.warn_of_nodes(policy.elastic_policy, new, bounds), passable=misfits)

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Set the variables, and TorchTune's command; open the port."""
        policy = _policy(info)
        if policy is None:
            return
        bounds = node_bounds_of(info.ml_policy)
        if bounds and info.trainer:
            info.trainer.count = elastic.node_count_of(trainjob, bounds)
        nodes = info.trainer.count if info.trainer else 1
        processes = processes_of(wanted_processes_of(policy, trainjob), info.node_resources)
        master = _master(info, trainjob)
        common = [env_var(names.NNODES, str(bounds or nodes)), env_var(names.NPROC_PER_NODE, str(processes))]
        meeting = [env_var(names.MASTER_ADDR, master), env_var(names.MASTER_PORT, str(TRAINER_PORT))]
        if bounds and policy.elastic_policy:
            meeting = elastic.rendezvous_env(policy.elastic_policy, trainjob, master)
        else:
            common.append(rank_env_var(names.NODE_RANK))
        if container := info.trainer_container:
            _set_up(trainjob, container, common, meeting)
            if tune.is_tune(trainjob.spec.trainer):
                devices = tune.Devices(nodes, processes, gpu_count_of(info.node_resources))
                info.command = tune.command_of(trainjob, devices, master, _commands(info))
        for target in _targets(info, policy):
            target.set_env(*common, *meeting)

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build an autoscaler where the runtime has metrics for one."""
        policy, bounds = _policy(info), node_bounds_of(info.ml_policy)
        if policy is None or bounds is None or not policy.elastic_policy or not policy.elastic_policy.metrics:
            return []
        return [elastic.build_autoscaler(policy.elastic_policy, trainjob, bounds)]


def _set_up(trainjob: TrainJob, main: Container, common: list[JsonObject], meeting: list[JsonObject]) -> None:
    trainer = trainjob.spec.trainer
    if trainer:
        main.merge_env(env_of(trainer.env))
    # TorchTune is told on its command line where to meet.
    main.set_env(*common, *(() if tune.is_tune(trainer) else meeting))
    main.expose(TRAINER_PORT)


def _policy(info: Info) -> TorchPolicy | None:
    return info.ml_policy.torch if info.ml_policy else None


def _master(info: Info, trainjob: TrainJob) -> str:
    if info.trainer:
        return info.trainer.first_endpoint
    # Without a trainer's job the variables go to other containers only, which get the address that it would have.
    return f"{trainjob.metadata.name}-{NODE}-0-0.{trainjob.metadata.name}"


def _commands(info: Info) -> Iterator[str]:
    """The words of the runtime's commands for training, of all jobs that have a part in it."""
    for pods in info.pod_sets:
        if pods.ancestor == Ancestor.TRAINER and (container := pods.container(NODE)):
            yield from container.spec.get("command") or ()


def _find(info: Info, job: str, name: str) -> Container | None:
    pods = info.pod_set(job)
    return (pods.container(name) or pods.init_container(name)) if pods else None


def _targets(info: Info, policy: TorchPolicy) -> Iterator[Container]:
    """The other containers that want the variables; raises LookupError for one that is not there."""
    for target in policy.env_injection.targets if policy.env_injection else ():
        for name in target.container_names:
            container = _find(info, target.job_name, name)
            if container is None:
                raise LookupError(f"envInjection: there is no container {name} in the job {target.job_name}")
            yield container


def _validate_injection(info: Info, policy: TorchPolicy, trainjob: TrainJob) -> ErrorList:
    return [
        fields.invalid(
            Path("spec.runtimeRef"),
            trainjob.spec.runtime_ref.name,
            f"the runtime's envInjection names a container {name} in a job {target.job_name}, which it does not have",
        )
        for target in (policy.env_injection.targets if policy.env_injection else ())
        for name in target.container_names
        if _find(info, target.job_name, name) is None
    ]
