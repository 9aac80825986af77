"""Lays a TrainJob's changes over its runtime's template: what comes out is the Info that the plugins start from.

First come `podTemplateOverrides`, then `runtimePatches`, each list in its own order, then `resourcesPerNode`. Changes
are strategic merge patches. Their targets are taken to be there: `targets` judges that first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ktrainer.api.decoding import encode
from ktrainer.api.labels import Ancestor
from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.container import EnvLog
from ktrainer.framework.info import Info
from ktrainer.framework.podset import NODE, PodSet
from ktrainer.kube import fields
from ktrainer.kube.fields import Kind, Path
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.kube.strategicmerge import MergeError, merge
from ktrainer.runtime.jobsetfacts import JOBSET_SPEC, POD_CHANGE, RESOURCES, jobset_facts
from ktrainer.runtime.structure import settle
from ktrainer.runtime.targets import OVERRIDES, PATCHES

if TYPE_CHECKING:
    from ktrainer.api.trainingruntime import MlPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject
    from ktrainer.runtime.blueprint import Blueprint


_META: Final = ("labels", "annotations")
"""What is taken of the metadata in an override; the rest of it is accepted, and means nothing."""


class _Misfit(Exception):
    """A change that does not fit the template."""

    def __init__(self, path: Path, value: str, reason: object) -> None:
        super().__init__(reason)
        self.error = fields.invalid(path, value, f"does not fit the runtime: {reason}")


def assemble(blueprint: Blueprint, trainjob: TrainJob, *, changes: bool = True) -> Info | ErrorList:
    """Make the Info of a TrainJob; an error where its changes do not fit. Without `changes` they are left out."""
    template: JsonObject = orjson.loads(blueprint.template)
    if changes:
        errors: ErrorList = []
        overrides, patches = _overrides_of(trainjob, errors), _patches_of(trainjob, errors)
        if errors:
            return errors
        try:
            template = _patched(_overridden(template, overrides), patches)
        except _Misfit as misfit:
            return [misfit.error]
    return _info(blueprint, trainjob, template)


def _overrides_of(trainjob: TrainJob, errors: ErrorList) -> list[tuple[set[str], JsonObject]]:
    """The jobs that each override is for, and the change to their pod templates; adds what no pod can have."""
    overrides = []
    for index, override in enumerate(trainjob.spec.pod_template_overrides):
        targets = {target.name for target in override.target_jobs}
        patch = encode(override)
        patch.pop("targetJobs")
        if "metadata" in patch:
            patch["metadata"] = {key: patch["metadata"][key] for key in _META if key in patch["metadata"]}
        errors += _drop_zeros(patch, OVERRIDES.index(index))
        overrides.append((targets, patch))
    return overrides


def _patches_of(trainjob: TrainJob, errors: ErrorList) -> list[tuple[str, JsonObject]]:
    """The manager of each patch, and the change to the JobSet's spec; adds what no pod can have."""
    patches = []
    for index, patch in enumerate(trainjob.spec.runtime_patches):
        change = patch.training_runtime_spec.template if patch.training_runtime_spec else None
        jobs = encode(change.spec) if change and change.spec else {}
        path = PATCHES.index(index).child("trainingRuntimeSpec.template.spec.replicatedJobs")
        for number, job in enumerate(jobs.get("replicatedJobs", ())):
            pods = job.get("template", {}).get("spec", {}).get("template", {})
            errors += _drop_zeros(pods, path.index(number).child("template.spec.template"))
        if jobs:
            patches.append((patch.manager, jobs))
    return patches


def _overridden(template: JsonObject, overrides: list[tuple[set[str], JsonObject]]) -> JsonObject:
    for targets, patch in overrides:
        for job in template.get("replicatedJobs") or ():
            if job["name"] in targets:
                pods = job["template"]["spec"]
                try:
                    pods["template"] = merge(pods["template"], patch, "core.v1.PodTemplateSpec")
                except MergeError as error:
                    raise _Misfit(OVERRIDES, job["name"], error) from error
    return _settled(template, OVERRIDES) if overrides else template


def _patched(template: JsonObject, patches: list[tuple[str, JsonObject]]) -> JsonObject:
    order = [job["name"] for job in template.get("replicatedJobs") or ()]
    for manager, jobs in patches:
        try:
            template = merge(template, jobs, JOBSET_SPEC, jobset_facts())
        except MergeError as error:
            raise _Misfit(PATCHES, manager, error) from error
        if order:
            template["replicatedJobs"].sort(key=lambda job: order.index(job["name"]))
    return _settled(template, PATCHES) if patches else template


def _drop_zeros(pods: JsonObject, path: Path) -> ErrorList:
    """Leave out of a change what is zero or empty below the pod spec: it must not clear what the runtime says.

    Returns what is of a wrong type; what is missing may be in the template.

    Parity: the original cannot tell zero and empty values from absent ones.
    """
    errors = settle(pods.get("spec", {}), POD_CHANGE, path.child("spec"))
    return [error for error in errors if error.kind is not Kind.REQUIRED]


def _settled(template: JsonObject, path: Path) -> JsonObject:
    # What was merged in has been seen by no schema yet.
    for error in settle(template, JOBSET_SPEC, Path()):
        raise _Misfit(path, str(error.path), error.body)
    return template


def _info(blueprint: Blueprint, trainjob: TrainJob, template: JsonObject) -> Info:
    log, spec, name = EnvLog(), trainjob.spec, trainjob.metadata.name
    trainer = trainer_of(trainjob)
    subdomain = (template.get("network") or {}).get("subdomain") or name
    info = Info(
        template=template,
        pod_sets=[PodSet(job, name, subdomain, log) for job in template.get("replicatedJobs") or ()],
        ml_policy=blueprint.ml_policy,
        pod_group_policy=blueprint.pod_group_policy,
        labels={**blueprint.labels, **spec.labels},
        annotations={**blueprint.annotations, **spec.annotations},
        command=None if trainer.command is None else list(trainer.command),
        args=None if trainer.args is None else list(trainer.args),
        env_log=log,
    )
    for patch in spec.runtime_patches:
        change = patch.training_runtime_spec.template if patch.training_runtime_spec else None
        if change and change.metadata:
            info.labels |= change.metadata.labels
            info.annotations |= change.metadata.annotations
    if info.ml_policy and info.ml_policy.mpi:
        # The trainer is the launcher there, as a rule, and its nodes are another job.
        info.sized = info.pod_set(NODE) or info.trainer
    _count(info, blueprint.ml_policy, trainjob)
    _set_resources(info, trainjob)
    return info


def _count(info: Info, policy: MlPolicy | None, trainjob: TrainJob) -> None:
    if policy is None:
        return
    wanted = trainer_of(trainjob).num_nodes
    for pods in info.pod_sets:
        if pods.ancestor == Ancestor.TRAINER:
            pods.count = policy.num_nodes or 1
    if info.trainer and wanted:
        info.trainer.count = wanted


def _set_resources(info: Info, trainjob: TrainJob) -> None:
    """Give the training nodes what the TrainJob wants for them, and note what a node has in all.

    Departs: the original counts GPUs and CPUs by the TrainJob's part alone, and without a policy leaves it out.
    """
    wanted = trainer_of(trainjob).resources_per_node
    change: JsonObject = copy_of(wanted) if wanted else {}
    settle(change, RESOURCES, Path())
    mpi = info.ml_policy.mpi if info.ml_policy else None
    found = False
    for pods in info.pod_sets:
        is_trainer, is_node = pods.ancestor == Ancestor.TRAINER, pods.name == NODE
        container = pods.container(NODE) if is_trainer or is_node else None
        if container is None:
            continue
        merged = merge(container.resources, change, RESOURCES, jobset_facts()) if change else container.resources
        # A job that is a node by its name alone is counted by only where the TrainJob's part would be meant for it.
        if not found and (is_trainer or mpi is not None or not change):
            info.node_resources, found = merged, True
        if change and (is_trainer or (is_node and mpi is not None and mpi.run_launcher_as_node)):
            container.spec["resources"] = merged
