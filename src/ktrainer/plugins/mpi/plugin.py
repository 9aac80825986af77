"""The plugin for runtimes with the policy `mpi`: the jobs `launcher` and `node`.

Departs: `numNodes` of the runtime sizes the job `node`, as that of the TrainJob does, and the launcher is always one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import CONFIG_MAPS, SECRETS
from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.component import is_made
from ktrainer.framework.findings import Findings
from ktrainer.framework.plugin import (
    ComponentBuilderPlugin,
    CustomValidationPlugin,
    EnforceMLPolicyPlugin,
    WatchExtensionPlugin,
)
from ktrainer.framework.podset import NODE
from ktrainer.framework.reader import fetch_surely
from ktrainer.framework.reserved import refuse_reserved
from ktrainer.framework.resources import gpu_count_of
from ktrainer.framework.watch import Watch
from ktrainer.kube import fields
from ktrainer.kube.access import Access
from ktrainer.kube.fields import Path
from ktrainer.plugins.mpi import objects
from ktrainer.plugins.mpi.hostfile import problem_with, size_of
from ktrainer.plugins.mpi.implementation import HOSTFILE_DIR, IMPLEMENTATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ktrainer.api.trainingruntime import MpiPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.component import Component
    from ktrainer.framework.dependencies import Dependencies
    from ktrainer.framework.info import Info
    from ktrainer.framework.podset import PodSet
    from ktrainer.kube.fields import ErrorList

ACCESS: Final = (
    Access(CONFIG_MAPS, ("list", "watch", "create", "patch")),
    # Created once, and read live before that; never changed.
    Access(SECRETS, ("get", "list", "watch", "create")),
)

LAUNCHER: Final = "launcher"

_TRAINER: Final = Path("spec.trainer")


class Mpi(CustomValidationPlugin, EnforceMLPolicyPlugin, ComponentBuilderPlugin, WatchExtensionPlugin):
    """Gives launcher and nodes SSH keys, and the launcher the list of hosts."""

    def __init__(self, dependencies: Dependencies) -> None:
        """Looks for a Secret that is there already, and makes keys where there is none."""
        self._reader = dependencies.reader
        self._make_keys = dependencies.make_ssh_keys

    async def validate(self, info: Info, old: TrainJob | None, new: TrainJob) -> Findings:
        """Refuse jobs that the runtime lacks, too many nodes, words for numbers, and variables that are ours to set."""
        policy = _policy(info)
        if policy is None:
            return Findings()
        errors = refuse_reserved(new, IMPLEMENTATIONS[policy.mpi_implementation].names)
        findings = Findings([*errors, *_validate_processes(new), *_validate_size(info, new, policy)])
        nodes = _wanted_nodes(info, new)
        if policy.run_launcher_as_node and (nodes or 1) >= 2:
            missing = [name for name in (LAUNCHER, NODE) if info.pod_set(name) is None]
            if missing:
                detail = f"must be 1: the launcher is a node, and the runtime has no job {' and no job '.join(missing)}"
                findings.errors.append(fields.invalid(_TRAINER.child("numNodes"), nodes, detail))
        elif policy.run_launcher_as_node and (node := info.pod_set(NODE)) and _count_of(node, info, new, policy) == 1:
            findings.warnings.append(
                "spec.trainer.numNodes: two nodes are started for 1, since the launcher is one and the job node cannot "
                "be empty"
            )
        return findings

    def enforce_ml_policy(self, info: Info, trainjob: TrainJob) -> None:
        """Count the nodes; bring keys, hostfile and variables into the pods."""
        policy = _policy(info)
        if policy is None:
            return
        for pods in info.pod_sets:
            pods.count = _count_of(pods, info, trainjob, policy)
        name = trainjob.metadata.name
        for pods in info.pod_sets:
            if pods.name not in {NODE, LAUNCHER}:
                continue
            pods.add_volumes(objects.ssh_volume(name))
            if container := pods.container(NODE):
                container.add_mounts({"name": objects.SSH_VOLUME, "mountPath": policy.ssh_auth_mount_path})
            if pods.name == LAUNCHER:
                pods.add_volumes(objects.hostfile_volume(name))
                if container:
                    container.add_mounts({"name": objects.HOSTFILE_VOLUME, "mountPath": HOSTFILE_DIR})
                    slots = _slots(info, trainjob, policy)
                    container.set_env(*IMPLEMENTATIONS[policy.mpi_implementation].variables(slots))

    async def build(self, info: Info, trainjob: TrainJob) -> list[Component]:
        """Build the hostfile, and the keys unless there are some; raises ValueError for more hosts than fit."""
        policy = _policy(info)
        if policy is None:
            return []
        components = []
        meta = trainjob.metadata
        secret = await fetch_surely(self._reader, SECRETS, meta.namespace, objects.secret_name_of(meta.name))
        if not is_made(secret, trainjob):
            components.append(objects.build_secret(trainjob, self._make_keys()))
        line, nodes = _line(info, trainjob, policy), list(_nodes(info, policy))
        if problem := problem_with(sum(size_of(line, pods, pods.count) for pods in nodes)):
            raise ValueError(problem)
        lines = (line.replace("{host}", host) for pods in nodes for host in pods.endpoints)
        return [*components, objects.build_hostfile(trainjob, lines)]

    def watches(self) -> Iterable[Watch]:
        """The objects that we make."""
        yield Watch(CONFIG_MAPS, labelled=True)
        yield Watch(SECRETS, labelled=True)


def _policy(info: Info) -> MpiPolicy | None:
    return info.ml_policy.mpi if info.ml_policy else None


def _wanted_nodes(info: Info, trainjob: TrainJob) -> int | None:
    wanted = trainer_of(trainjob).num_nodes
    if wanted is not None:
        return wanted
    return info.ml_policy.num_nodes if info.ml_policy else None


def _count_of(pods: PodSet, info: Info, trainjob: TrainJob, policy: MpiPolicy) -> int:
    """How many pods of a job there shall be."""
    wanted = _wanted_nodes(info, trainjob)
    if pods.name == NODE and wanted is not None:
        return max(wanted - 1, 1) if policy.run_launcher_as_node else wanted
    is_alone = pods.name == LAUNCHER or (pods is info.trainer and pods.name != NODE)
    return 1 if is_alone else pods.count


def _line(info: Info, trainjob: TrainJob, policy: MpiPolicy) -> str:
    """A line of the hostfile, with `{host}` where the name of a host goes."""
    slots = _slots(info, trainjob, policy)
    return IMPLEMENTATIONS[policy.mpi_implementation].host.replace("{slots}", str(slots))


def _nodes(info: Info, policy: MpiPolicy) -> Iterator[PodSet]:
    for pods in info.pod_sets:
        if pods.name == NODE or (policy.run_launcher_as_node and pods.name == LAUNCHER):
            yield pods


def _slots(info: Info, trainjob: TrainJob, policy: MpiPolicy) -> int:
    """The processes on a node: one for each GPU where nobody wants another number than one."""
    wanted = trainer_of(trainjob).num_proc_per_node
    if isinstance(wanted, int):
        return wanted
    if policy.num_proc_per_node == 1:
        return max(1, gpu_count_of(info.node_resources))
    return policy.num_proc_per_node


def _validate_size(info: Info, trainjob: TrainJob, policy: MpiPolicy) -> ErrorList:
    """Refuse more nodes than the hostfile has room for."""
    line = _line(info, trainjob, policy)
    sizes = (size_of(line, pods, _count_of(pods, info, trainjob, policy)) for pods in _nodes(info, policy))
    problem = problem_with(sum(sizes))
    if not problem:
        return []
    wanted = trainer_of(trainjob).num_nodes
    if wanted is not None:
        return [fields.invalid(_TRAINER.child("numNodes"), wanted, problem)]
    return [fields.invalid(Path("spec.runtimeRef"), trainjob.spec.runtime_ref.name, problem)]


def _validate_processes(trainjob: TrainJob) -> ErrorList:
    processes = trainer_of(trainjob).num_proc_per_node
    if isinstance(processes, str):
        return [fields.invalid(_TRAINER.child("numProcPerNode"), processes, "must be a number: MPI has no such words")]
    return []
