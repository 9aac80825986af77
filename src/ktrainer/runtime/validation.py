"""What must hold for any TrainJob and any runtime, whatever plugins there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import orjson

from ktrainer.api.labels import ANCESTOR, Ancestor
from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.findings import Findings
from ktrainer.framework.podset import NODE
from ktrainer.kube import fields
from ktrainer.kube.fields import Path
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.runtime.blueprint import TEMPLATE, read_blueprint
from ktrainer.runtime.jobsetfacts import RESOURCES
from ktrainer.runtime.rules import validate_rules
from ktrainer.runtime.selector import validate_selector
from ktrainer.runtime.structure import settle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ktrainer.api.trainjob import TrainJob
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject

REQUIRED_CONTAINERS: Final[dict[str, str]] = {
    Ancestor.TRAINER: NODE,
    Ancestor.DATASET_INITIALIZER: Ancestor.DATASET_INITIALIZER,
    Ancestor.MODEL_INITIALIZER: Ancestor.MODEL_INITIALIZER,
}
"""The container that a job of an ancestor must have."""

_TRAINER: Final = Path("spec.trainer")
_INITIALIZER: Final = Path("spec.initializer")


def validate_parts(trainjob: TrainJob) -> ErrorList:
    """Check the parts of a TrainJob that stay plain JSON.

    With errors here the plugins cannot be asked: they take these parts for granted.
    """
    errors: ErrorList = []
    for path, env in _environments(trainjob):
        for position, entry in enumerate(env):
            errors += settle(copy_of(entry), "core.v1.EnvVar", path.index(position))
    trainer = trainjob.spec.trainer
    if trainer and trainer.resources_per_node:
        errors += settle(copy_of(trainer.resources_per_node), RESOURCES, _TRAINER.child("resourcesPerNode"))
    return errors


def validate_processes(trainjob: TrainJob) -> ErrorList:
    """Refuse a number of processes that no framework can start."""
    processes = trainer_of(trainjob).num_proc_per_node
    if isinstance(processes, int) and processes < 1:
        return [fields.invalid(_TRAINER.child("numProcPerNode"), processes, "must be at least 1")]
    return []


def _environments(trainjob: TrainJob) -> Iterator[tuple[Path, list[JsonObject]]]:
    spec = trainjob.spec
    if spec.trainer and spec.trainer.env:
        yield _TRAINER.child("env"), spec.trainer.env
    if spec.initializer and spec.initializer.dataset:
        yield _INITIALIZER.child("dataset", "env"), spec.initializer.dataset.env
    if spec.initializer and spec.initializer.model:
        yield _INITIALIZER.child("model", "env"), spec.initializer.model.env


def validate_runtime(kind: str, value: JsonObject) -> Findings:
    """All that is wrong with a runtime of one of the two kinds. Nothing of `value` is changed."""
    blueprint = read_blueprint(kind, value)
    if isinstance(blueprint, list):
        return Findings(blueprint)
    warnings = [f"the {kind} is deprecated, and will be removed"] if blueprint.is_deprecated else []
    # As it was given: the blueprint leaves out zeros, such as that of replicas.
    template = orjson.loads(blueprint.spec).get("template") or {}
    errors = [*validate_rules(value), *_validate_jobs(template.get("spec") or {})]
    errors += validate_selector(blueprint.allowed_namespaces or {}, Path("spec.allowedNamespaces"))
    return Findings(errors, warnings)


def _validate_jobs(template: JsonObject) -> ErrorList:
    """Check the replicated jobs of a runtime whose part in training is known."""
    errors: ErrorList = []
    for index, job in enumerate(template.get("replicatedJobs") or ()):
        labels = (job["template"].get("metadata") or {}).get("labels") or {}
        ancestor = labels.get(ANCESTOR)
        if ancestor not in REQUIRED_CONTAINERS:
            continue
        path = TEMPLATE.child("replicatedJobs").index(index)
        if job.get("replicas", 1) != 1:
            errors.append(fields.invalid(path.child("replicas"), job["replicas"], "must be 1"))
        names = [container["name"] for container in job["template"]["spec"]["template"]["spec"]["containers"]]
        if REQUIRED_CONTAINERS[ancestor] not in names:
            detail = f"must have a container {REQUIRED_CONTAINERS[ancestor]}: the job's ancestor is {ancestor}"
            path = path.child("template", "spec", "template", "spec", "containers")
            errors.append(fields.invalid(path, names, detail))
    return errors
