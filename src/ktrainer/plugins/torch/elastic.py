"""Elastic training: the number of nodes may change while the job runs, by hand or by an autoscaler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import HORIZONTAL_POD_AUTOSCALERS, TRAINJOBS
from ktrainer.api.trainjob import trainer_of
from ktrainer.framework.component import Component, new_object
from ktrainer.framework.container import env_var
from ktrainer.framework.rendezvous import TRAINER_PORT
from ktrainer.kube import fields
from ktrainer.kube.access import Access
from ktrainer.kube.fields import Path
from ktrainer.kube.jsonvalue import copy_of
from ktrainer.plugins.torch import names

if TYPE_CHECKING:
    from ktrainer.api.trainingruntime import ElasticPolicy
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.nodes import NodeBounds
    from ktrainer.kube.fields import ErrorList
    from ktrainer.kube.jsonvalue import JsonObject

ACCESS: Final = (Access(HORIZONTAL_POD_AUTOSCALERS, ("create", "patch")),)


def node_count_of(trainjob: TrainJob, bounds: NodeBounds) -> int:
    """How many nodes there shall be: as many as the TrainJob says where that is within bounds, else the least."""
    wanted = trainer_of(trainjob).num_nodes
    return wanted if wanted is not None and wanted in bounds else bounds.least


def validate_nodes(trainjob: TrainJob, bounds: NodeBounds) -> ErrorList:
    """Refuse a number of nodes that is out of bounds."""
    wanted = trainer_of(trainjob).num_nodes
    if wanted is None or wanted in bounds:
        return []
    detail = f"the runtime allows {bounds.least} to {bounds.most} nodes"
    return [fields.invalid(Path("spec.trainer.numNodes"), wanted, detail)]


def warn_of_nodes(policy: ElasticPolicy, trainjob: TrainJob, bounds: NodeBounds) -> list[str]:
    """Warn of a number of nodes that is left out: autoscalers are told of no target then, but of an error."""
    if not policy.metrics or trainer_of(trainjob).num_nodes is not None:
        return []
    detail = "the runtime's autoscaler changes only a number that is given; start with one, such as"
    return [f"spec.trainer.numNodes: {detail} {bounds.least}"]


def rendezvous_env(policy: ElasticPolicy, trainjob: TrainJob, master: str) -> list[JsonObject]:
    """The variables by which nodes that come and go find each other; ranks are dealt out when they meet."""
    variables = [
        env_var(names.RDZV_BACKEND, "c10d"),
        env_var(names.RDZV_ENDPOINT, f"{master}:{TRAINER_PORT}"),
        env_var(names.RDZV_ID, trainjob.metadata.name),
    ]
    if policy.max_restarts is not None:
        variables.append(env_var(names.MAX_RESTARTS, str(policy.max_restarts)))
    return variables


def build_autoscaler(policy: ElasticPolicy, trainjob: TrainJob, bounds: NodeBounds) -> Component:
    """The autoscaler that follows the runtime's metrics; it scales the TrainJob, not the JobSet."""
    meta = trainjob.metadata
    autoscaler = new_object(HORIZONTAL_POD_AUTOSCALERS, trainjob, meta.name)
    autoscaler["spec"] = {
        "scaleTargetRef": {"apiVersion": TRAINJOBS.api_version, "kind": TRAINJOBS.kind, "name": meta.name},
        "minReplicas": bounds.least,
        "maxReplicas": bounds.most,
        "metrics": copy_of(policy.metrics),
    }
    return Component(HORIZONTAL_POD_AUTOSCALERS, autoscaler)
