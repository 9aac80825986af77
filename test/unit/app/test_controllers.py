"""What a replica that does not lead keeps in memory."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ktrainer.api.configuration import Configuration
from ktrainer.api.resources import JOBSETS, TRAINJOBS
from ktrainer.app import controllers
from ktrainer.app.clusterview import ClusterView
from ktrainer.app.controllers import add_controllers
from ktrainer.app.keys import make_curve_keys, make_ssh_keys
from ktrainer.app.training import build_training
from ktrainer.client.config.config import ConnectionConfig
from ktrainer.controllers.trainjob.departures import Departures
from ktrainer.framework.dependencies import Dependencies
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.operator import Operator, OperatorSettings
from support.patience import Patient
from support.training import API_VERSION, runtime
from support.trainingcluster import TrainingCluster, idle_cluster
from support.virtualtime import settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

    from support.virtualtime import VirtualClock

KEY = ObjectKey("team-a", "demo")


class Standby:
    """A replica that does not get to lead, since nobody answers it about its lease."""

    def __init__(self, cluster: TrainingCluster, clock: VirtualClock) -> None:
        settings = OperatorSettings("ktrainer", lease_name="lease")
        self.operator = Operator(ConnectionConfig(cluster.server.url), settings, clock=clock, terminator=Patient())
        view = ClusterView(self.operator)
        dependencies = Dependencies(reader=view, make_ssh_keys=make_ssh_keys, make_curve_keys=make_curve_keys)
        add_controllers(self.operator, view, build_training(dependencies), Configuration(), ())

    def depth(self) -> float:
        """How many keys are queued."""
        samples = [each for metric in self.operator.registry.collect() for each in metric.samples]
        return sum(each.value for each in samples if each.name == "workqueue_depth")

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.operator.run(), name="standby")
        await self.operator.cache.wait_synced()
        await settle()
        try:
            yield
        finally:
            self.operator.request_stop()
            await task


def jobset_of(trainjob: dict[str, Any]) -> dict[str, Any]:
    """The JobSet of a TrainJob, which has ended."""
    uid = trainjob["metadata"]["uid"]
    owner = {"apiVersion": API_VERSION, "kind": "TrainJob", "name": "demo", "uid": uid, "controller": True}
    conditions = [{"type": "Completed", "status": "True", "reason": "x", "message": ""}]
    metadata = {"name": "demo", "namespace": "team-a", "ownerReferences": [owner]}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": conditions}}


async def test_a_replica_that_waits_should_keep_nothing_of_what_is_gone(
    virtual_clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Departures] = []

    def keep(*parts: Any) -> Departures:
        kept.append(Departures(*parts))
        return kept[-1]

    monkeypatch.setattr(controllers, "Departures", keep)
    async with idle_cluster(virtual_clock, runtime()) as cluster:
        standby, server = Standby(cluster, virtual_clock), cluster.server
        async with standby.running():
            cluster.submit()
            trainjob = server.find(TRAINJOBS, "demo")
            assert trainjob is not None
            uid = trainjob["metadata"]["uid"]
            server.create(JOBSETS, jobset_of(trainjob))
            await cluster.wait()
            server.remove(JOBSETS, "demo")
            await cluster.wait()
            assert (standby.depth(), kept[0].last_of(KEY, uid) is not None) == (1, True)
            server.remove(TRAINJOBS, "demo")
            await cluster.wait()
            assert (standby.depth(), kept[0].last_of(KEY, uid)) == (0, None)
            server.create(JOBSETS, jobset_of(trainjob))
            await cluster.wait()
            server.remove(JOBSETS, "demo")
            await cluster.wait()
            assert (standby.depth(), kept[0].last_of(KEY, uid)) == (0, None)
