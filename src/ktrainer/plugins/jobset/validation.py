"""What a TrainJob may ask of a JobSet, when it is created and when it is updated."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import Ancestor
from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.nodes import node_bounds_of
from ktrainer.framework.podset import NODE
from ktrainer.kube import fields
from ktrainer.kube.fields import Path

if TYPE_CHECKING:
    from ktrainer.api.patch import RuntimePatch
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.info import Info
    from ktrainer.framework.podset import PodSet
    from ktrainer.kube.fields import ErrorList

INITIALIZER_VOLUME: Final = "initializer"

_PATCHES: Final = Path("spec.runtimePatches")
_OVERRIDES: Final = Path("spec.podTemplateOverrides")
_NODES: Final = Path("spec.trainer.numNodes")

_DOMAIN: Final = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_SEGMENTS: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII)

# JobSet refuses names of pods that are longer, with the five letters and the hyphen that the Job controller adds.
_MAX_POD_NAME: Final = 63
_SUFFIX: Final = len("-abcde")


def validate_initializers(info: Info, trainjob: TrainJob) -> ErrorList:
    """Refuse an initializer for which the runtime has no job, container or mount; a job is found by its name."""
    initializer = trainjob.spec.initializer
    if initializer is None:
        return []
    wanted = ((Ancestor.DATASET_INITIALIZER, initializer.dataset), (Ancestor.MODEL_INITIALIZER, initializer.model))
    missing = (_missing(info, name) for name, source in wanted if source is not None)
    ref = trainjob.spec.runtime_ref
    value = {"apiGroup": ref.api_group, "kind": ref.kind, "name": ref.name}
    return [fields.invalid(Path("spec.runtimeRef"), value, what) for what in missing if what]


def _missing(info: Info, name: str) -> str:
    pods = info.pod_set(name)
    if pods is None:
        return f"the runtime has no job {name}, which spec.initializer needs"
    container = pods.container(name)
    if container is None:
        return f"the runtime's job {name} has no container {name}, which spec.initializer needs"
    if not any(mount.get("name") == INITIALIZER_VOLUME for mount in container.mounts):
        return f"the container {name} of the runtime does not mount the volume {INITIALIZER_VOLUME}"
    return ""


def validate_managers(trainjob: TrainJob) -> ErrorList:
    """Refuse patches whose manager is not a path under a domain."""
    path = _PATCHES.child("manager")
    detail = "must be a path under a domain, such as acme.io/placement"
    managers = (patch.manager for patch in trainjob.spec.runtime_patches)
    return [fields.invalid(path, manager, detail) for manager in managers if not _is_path_under_domain(manager)]


def _is_path_under_domain(text: str) -> bool:
    domain, _, segments = text.partition("/")
    return _DOMAIN.fullmatch(domain) is not None and _SEGMENTS.fullmatch(segments) is not None


def validate_update(info: Info, old: TrainJob, new: TrainJob) -> ErrorList:
    """Refuse changes that pods which run could not follow."""
    errors: ErrorList = []
    if not old.spec.suspend and not new.spec.suspend:
        detail = "can change only where the TrainJob is suspended before or after"
        if _patches(old) != _patches(new):
            errors.append(fields.forbidden(_PATCHES, detail))
        if old.spec.pod_template_overrides != new.spec.pod_template_overrides:
            errors.append(fields.forbidden(_OVERRIDES, detail))
    # The whole trainer may come and go, as far as the schema allows it: only a number that is there is immutable.
    if old.spec.trainer and new.spec.trainer and _nodes(old) != _nodes(new) and node_bounds_of(info.ml_policy) is None:
        errors.append(fields.invalid(_NODES, _nodes(new), "field is immutable: the runtime is not elastic"))
    return errors


def _patches(trainjob: TrainJob) -> list[RuntimePatch]:
    # When a patch was made says nothing about what it changes.
    return [patch.model_copy(update={"time": None}) for patch in trainjob.spec.runtime_patches]


def _nodes(trainjob: TrainJob) -> int | None:
    return trainer_of(trainjob).num_nodes


def warn_of_names(info: Info, trainjob: TrainJob) -> list[str]:
    """Warn of a name with which the names of pods get too long: the JobSet will be refused."""
    name = trainjob.metadata.name
    rest = max((len(_longest_name(info, pods, trainjob)) for pods in info.pod_sets), default=0)
    allowed = _MAX_POD_NAME - _SUFFIX - rest
    if len(name) <= allowed:
        return []
    return [f"metadata.name: the names of its pods get too long; at most {allowed} characters fit with this runtime"]


def _longest_name(info: Info, pods: PodSet, trainjob: TrainJob) -> str:
    """What follows the TrainJob's name in the longest name of a pod."""
    count = pods.count
    if pods.ancestor == Ancestor.TRAINER or pods.name == NODE:
        bounds = node_bounds_of(info.ml_policy)
        count = max(count, _nodes(trainjob) or 1, bounds.most if bounds else 1)
    return f"-{pods.name}-{pods.replicas - 1}-{count - 1}"
