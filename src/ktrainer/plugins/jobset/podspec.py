"""Puts into the pod templates what the TrainJob says about its trainer and initializers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.labels import Ancestor
from ktrainer.framework.container import env_var
from ktrainer.framework.podset import NODE
from ktrainer.framework.userenv import env_of

if TYPE_CHECKING:
    from ktrainer.api.trainjob import InitializerSource, TrainJob
    from ktrainer.framework.container import Container
    from ktrainer.framework.info import Info
    from ktrainer.framework.podset import PodSet

STORAGE_URI: Final = "STORAGE_URI"


def set_initializers(info: Info, trainjob: TrainJob) -> None:
    """Tell the initializers where to download from; a job is found by its ancestor."""
    initializer = trainjob.spec.initializer
    if initializer is None:
        return
    for ancestor, source in (
        (Ancestor.DATASET_INITIALIZER, initializer.dataset),
        (Ancestor.MODEL_INITIALIZER, initializer.model),
    ):
        if source is None:
            continue
        for pods in info.pod_sets:
            container = pods.container(ancestor) if pods.ancestor == ancestor else None
            if container:
                _set_source(container, source)


def _set_source(container: Container, source: InitializerSource) -> None:
    if source.storage_uri is not None:
        container.merge_env([env_var(STORAGE_URI, source.storage_uri)])
    container.merge_env(env_of(source.env))
    if source.secret_ref is not None:
        present = container.spec.get("envFrom") or []
        container.spec["envFrom"] = [*present, {"secretRef": {"name": source.secret_ref.name}}]


def set_trainer(info: Info, trainjob: TrainJob) -> None:
    """Set image, command, arguments and variables of the training container.

    The variables also go to the nodes of a launcher that is a node itself.
    """
    trainer = trainjob.spec.trainer
    for pods in info.pod_sets:
        container = pods.container(NODE)
        if container is None:
            continue
        if pods.ancestor == Ancestor.TRAINER:
            if trainer and trainer.image is not None:
                container.spec["image"] = trainer.image
            _set_words(container, "command", info.command)
            _set_words(container, "args", info.args)
        if trainer and (pods.ancestor == Ancestor.TRAINER or _is_node_beside_launcher(info, pods)):
            container.merge_env(env_of(trainer.env))


def _set_words(container: Container, field: str, words: list[str] | None) -> None:
    if words:
        container.spec[field] = list(words)
    elif words is not None:
        # An empty list stands for what the image says, and is the same as none.
        container.spec.pop(field, None)


def _is_node_beside_launcher(info: Info, pods: PodSet) -> bool:
    mpi = info.ml_policy.mpi if info.ml_policy else None
    return mpi is not None and mpi.run_launcher_as_node and pods.name == NODE
