"""A runtime, checked and ready to build from: what a TrainingRuntime and a ClusterTrainingRuntime have in common.

It is frozen and shared between all TrainJobs that use it. The template is kept as bytes, so that everybody who parses
it has a copy of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from ktrainer.api.decoding import decode
from ktrainer.api.labels import DEPRECATED, SUPPORT
from ktrainer.api.resources import API_VERSION
from ktrainer.api.trainingruntime import ClusterTrainingRuntime, RunPolicy, TrainingRuntime
from ktrainer.kube import fields
from ktrainer.kube.fields import Path
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.runtime.jobsetfacts import JOBSET_SPEC
from ktrainer.runtime.structure import settle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ktrainer.api.trainingruntime import MlPolicy, PodGroupPolicy, TrainingRuntimeSpec
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject

_CLUSTER: Final = "ClusterTrainingRuntime"
KINDS: Final = frozenset({"TrainingRuntime", _CLUSTER})
"""The kinds of runtimes."""

TEMPLATE: Final = Path("spec.template.spec")
_METRICS: Final = Path("spec.mlPolicy.torch.elasticPolicy.metrics")


@dataclass(frozen=True, slots=True)
class JobNames:
    """The names of a replicated job's containers, which patches may refer to."""

    containers: frozenset[str]
    init_containers: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Blueprint:
    """A runtime."""

    kind: str
    name: str
    ml_policy: MlPolicy | None
    pod_group_policy: PodGroupPolicy | None
    run_policy: RunPolicy
    allowed_namespaces: JsonObject | None
    """A label selector over the namespaces that may use this runtime; none where all may."""
    labels: Mapping[str, str]
    """The labels of the JobSet."""
    annotations: Mapping[str, str]
    """The annotations of the JobSet."""
    template: bytes
    """The spec of the JobSet as JSON, settled."""
    jobs: Mapping[str, JobNames]
    """The replicated jobs by name."""
    spec: bytes
    """The spec of the runtime as JSON, just as it was given."""
    is_deprecated: bool


def read_blueprint(kind: str, value: JsonObject) -> Blueprint | ErrorList:
    """Check a runtime of one of the two kinds; a non-empty list of errors where it cannot be used.

    Nothing of `value` is changed.
    """
    runtime = decode(ClusterTrainingRuntime, value) if kind == _CLUSTER else decode(TrainingRuntime, value)
    if isinstance(runtime, list):
        return runtime
    try:
        whole = orjson.dumps(value.get("spec") or {})
    except TypeError as error:
        return [fields.invalid(Path("spec"), "object", f"must be JSON: {error}")]
    spec = runtime.spec
    template = (orjson.loads(whole).get("template") or {}).get("spec") or {}
    errors = [*_check_foreign(spec), *(settle(template, JOBSET_SPEC, TEMPLATE) or _check_jobs(template))]
    if errors:
        return errors
    meta = spec.template.metadata
    return Blueprint(
        kind=kind,
        name=runtime.metadata.name,
        ml_policy=spec.ml_policy,
        pod_group_policy=spec.pod_group_policy,
        run_policy=spec.run_policy or RunPolicy(),
        allowed_namespaces=getattr(spec, "allowed_namespaces", None),
        labels=meta.labels if meta else {},
        annotations=meta.annotations if meta else {},
        template=orjson.dumps(template),
        jobs={job["name"]: _names_of(job) for job in template.get("replicatedJobs") or ()},
        spec=whole,
        is_deprecated=runtime.metadata.labels.get(SUPPORT) == DEPRECATED,
    )


def manifest_of(blueprint: Blueprint) -> JsonObject:
    """The runtime as an object again: kind, name and spec."""
    return {
        "apiVersion": API_VERSION,
        "kind": blueprint.kind,
        "metadata": {"name": blueprint.name},
        "spec": orjson.loads(blueprint.spec),
    }


def _check_foreign(spec: TrainingRuntimeSpec) -> ErrorList:
    """The structure of what other kinds define, besides the template."""
    selector = getattr(spec, "allowed_namespaces", None)
    errors = settle(copy_of(selector or {}), "meta.v1.LabelSelector", Path("spec.allowedNamespaces"))
    elastic = spec.ml_policy and spec.ml_policy.torch and spec.ml_policy.torch.elastic_policy
    for position, metric in enumerate(elastic.metrics if elastic else ()):
        errors += settle(copy_of(metric), "autoscaling.v2.MetricSpec", _METRICS.index(position))
    return errors


def _check_jobs(template: JsonObject) -> ErrorList:
    """What the schema leaves open and a JobSet cannot do without: whole pod templates, and each name once."""
    errors: ErrorList = []
    seen: set[str] = set()
    for index, job in enumerate(template.get("replicatedJobs") or ()):
        path = TEMPLATE.child("replicatedJobs").index(index)
        if job["name"] in seen:
            errors.append(fields.duplicate(path.child("name"), job["name"]))
        seen.add(job["name"])
        inner = job
        for depth, field in enumerate(_TO_CONTAINERS, 1):
            inner = inner.get(field)
            if not inner:
                errors.append(fields.required(path.child(*_TO_CONTAINERS[:depth])))
                break
    return errors


_TO_CONTAINERS: Final = ("template", "spec", "template", "spec", "containers")


def _names_of(job: JsonObject) -> JobNames:
    pod = job["template"]["spec"]["template"]["spec"]
    return JobNames(
        frozenset(container["name"] for container in pod["containers"]),
        frozenset(container["name"] for container in pod.get("initContainers") or ()),
    )
