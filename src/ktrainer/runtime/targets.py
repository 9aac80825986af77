"""Whether what a TrainJob changes in its runtime is there: judged by the runtime as it was before any change.

Departs: the original judges the runtime with the changes already in it, so that whatever they add seems to be there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import Ancestor
from ktrainer.framework.podset import NODE
from ktrainer.kube import fields
from ktrainer.kube.fields import Path

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ktrainer.api.override import PodSpecOverride
    from ktrainer.api.patch import PodSpecPatch
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.fields import ErrorList
    from ktrainer.runtime.blueprint import Blueprint

OVERRIDES: Final = Path("spec.podTemplateOverrides")
PATCHES: Final = Path("spec.runtimePatches")

_OWN_ENV: Final = frozenset({NODE, Ancestor.DATASET_INITIALIZER, Ancestor.MODEL_INITIALIZER})
"""Containers whose variables a TrainJob sets elsewhere."""


def validate_targets(blueprint: Blueprint, trainjob: TrainJob) -> ErrorList:
    """Refuse changes to jobs and containers that the runtime lacks, and to variables that are set elsewhere."""
    errors: ErrorList = []
    for override in trainjob.spec.pod_template_overrides:
        for target in override.target_jobs:
            for value, detail in _problems(blueprint, target.name, override.spec):
                errors.append(fields.invalid(OVERRIDES, value, detail))
    for patch in trainjob.spec.runtime_patches:
        template = patch.training_runtime_spec.template if patch.training_runtime_spec else None
        for job in template.spec.replicated_jobs if template and template.spec else ():
            pods = job.template.spec.template if job.template and job.template.spec else None
            for value, detail in _problems(blueprint, job.name, pods.spec if pods else None):
                errors.append(fields.invalid(PATCHES, value, detail))
    return errors


def _problems(blueprint: Blueprint, job: str, spec: PodSpecOverride | PodSpecPatch | None) -> Iterator[tuple[str, str]]:
    names = blueprint.jobs.get(job)
    if names is None:
        yield job, "the runtime has no such job"
        return
    if spec is None:
        return
    for container in spec.init_containers:
        if container.name not in names.init_containers:
            yield container.name, f"the runtime's job {job} has no such init container"
    for container in spec.containers:
        if container.name not in names.containers:
            yield container.name, f"the runtime's job {job} has no such container"
        elif container.env and container.name in _OWN_ENV:
            yield container.name, "the variables of this container are set by spec.trainer or spec.initializer"
