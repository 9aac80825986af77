"""The webhook as API servers call it: reviews go in and answers come out, in a cluster of a few objects."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from ktrainer.api.resources import TRAINJOBS
from ktrainer.app.admission import build_hooks
from ktrainer.app.training import build_training
from ktrainer.machinery.admission.metrics import WebhookMetrics
from ktrainer.machinery.admission.runner import AdmissionRunner
from ktrainer.webhook.metrics import Denials
from support.laggingcluster import Cluster
from support.reviews import accept, review

if TYPE_CHECKING:
    from ktrainer.kube.identity import Resource

J = dict[str, Any]

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class FixedClock:
    """It is always `NOW`."""

    def monotonic(self) -> float:
        return 0.0

    def now(self) -> datetime:
        return NOW


class Webhook:
    """All hooks, over a cluster."""

    def __init__(self, cluster: Cluster | None = None) -> None:
        self.cluster = cluster or Cluster()
        self.registry = CollectorRegistry()
        runtimes = build_training(self.cluster.dependencies)
        hooks = build_hooks(runtimes, self.cluster, Denials(self.registry), FixedClock())
        self._hooks = {hook.path: hook for hook in hooks}
        self._runner = AdmissionRunner(WebhookMetrics(CollectorRegistry()))

    async def ask(self, path: str, **request: Any) -> J:
        """The answer to a review, checked as an API server checks it."""
        hook = self._hooks[path]
        deadline = asyncio.get_running_loop().time() + 10
        answer = await self._runner.answer(hook, review("u-7", **request), deadline)
        return accept(answer, "u-7", is_mutating=hook.is_mutating)

    async def judge(self, new: J, old: J | None = None, *, resource: Resource = TRAINJOBS) -> J:
        """What the validator says of an object that is created, or updated from an old one."""
        metadata = new["metadata"]
        request = {"name": metadata["name"], "namespace": metadata.get("namespace", ""), "object": new}
        change = {"operation": "CREATE"} if old is None else {"operation": "UPDATE", "oldObject": old}
        return await self.ask(f"/validate-trainer-kubeflow-org-v1alpha1-{resource.kind.lower()}", **request, **change)

    async def scale(self, nodes: int) -> J:
        """What the validator says of another number of nodes for the TrainJob `demo`."""
        scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": nodes}}
        return await self.ask(
            "/validate-trainer-kubeflow-org-v1alpha1-trainjob",
            operation="UPDATE",
            subResource="scale",
            name="demo",
            namespace="team-a",
            object=scale,
            oldObject=scale,
        )
