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
from ktrainer.kube.fields import Path
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
        try:
            template = _patched(_overridden(template, trainjob), trainjob)
        except _Misfit as misfit:
            return [misfit.error]
    return _info(blueprint, trainjob, template)


def _overridden(template: JsonObject, trainjob: TrainJob) -> JsonObject:
    for override in trainjob.spec.pod_template_overrides:
        targets = {target.name for target in override.target_jobs}
        patch = encode(override)
        patch.pop("targetJobs")
        if "metadata" in patch:
            patch["metadata"] = {key: patch["metadata"][key] for key in _META if key in patch["metadata"]}
        _drop_zeros(patch)
        for job in template.get("replicatedJobs") or ():
            if job["name"] in targets:
                pods = job["template"]["spec"]
                try:
                    pods["template"] = merge(pods["template"], patch, "core.v1.PodTemplateSpec")
                except MergeError as error:
                    raise _Misfit(OVERRIDES, job["name"], error) from error
    return _settled(template, OVERRIDES) if trainjob.spec.pod_template_overrides else template


def _patched(template: JsonObject, trainjob: TrainJob) -> JsonObject:
    order = [job["name"] for job in template.get("replicatedJobs") or ()]
    for patch in trainjob.spec.runtime_patches:
        change = patch.training_runtime_spec.template if patch.training_runtime_spec else None
        if change and change.spec:
            jobs = encode(change.spec)
            for job in jobs.get("replicatedJobs", ()):
                _drop_zeros(job.get("template", {}).get("spec", {}).get("template", {}))
            try:
                template = merge(template, jobs, JOBSET_SPEC, jobset_facts())
            except MergeError as error:
                raise _Misfit(PATCHES, patch.manager, error) from error
            if order:
                template["replicatedJobs"].sort(key=lambda job: order.index(job["name"]))
    return _settled(template, PATCHES) if trainjob.spec.runtime_patches else template


def _drop_zeros(pods: JsonObject) -> None:
    """Leave out of a change what is zero or empty below the pod spec: it must not clear what the runtime says.

    Parity: the original cannot tell such values from absent ones.
    """
    settle(pods.get("spec", {}), POD_CHANGE, Path())


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
        if not found:
            info.node_resources, found = merged, True
        if change and (is_trainer or (is_node and mpi is not None and mpi.run_launcher_as_node)):
            container.spec["resources"] = merged
