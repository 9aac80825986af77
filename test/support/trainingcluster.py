"""The TrainJob controller at work against the in-process API server, in virtual time."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ktrainer.api.configuration import Configuration
from ktrainer.api.gates import Gate, open_gates
from ktrainer.api.resources import (
    CLUSTER_TRAINING_RUNTIMES,
    CONFIG_MAPS,
    COSCHEDULING_POD_GROUPS,
    JOBSETS,
    LIMIT_RANGES,
    PODS,
    RUNTIME_CLASSES,
    SECRETS,
    TRAINING_RUNTIMES,
    TRAINJOBS,
    VOLCANO_POD_GROUPS,
)
from ktrainer.app.clusterview import ClusterView
from ktrainer.app.controllers import add_controllers
from ktrainer.app.keys import make_curve_keys, make_ssh_keys
from ktrainer.app.training import build_training
from ktrainer.client.config.config import ConnectionConfig, TlsConfig
from ktrainer.client.events.body import EVENTS
from ktrainer.framework.dependencies import Dependencies
from ktrainer.kube.timestamp import format_time
from ktrainer.machinery.operator import Operator, OperatorSettings
from support.apiserver import ApiServer, api_server
from support.patience import Patient
from support.training import runtime, trainjob_json
from support.virtualtime import settle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from ktrainer.aio.clock import Clock

RESOURCES = (
    TRAINJOBS,
    TRAINING_RUNTIMES,
    CLUSTER_TRAINING_RUNTIMES,
    JOBSETS,
    CONFIG_MAPS,
    SECRETS,
    COSCHEDULING_POD_GROUPS,
    VOLCANO_POD_GROUPS,
    LIMIT_RANGES,
    RUNTIME_CLASSES,
    PODS,
    EVENTS,
)

J = dict[str, Any]


class TrainingCluster:
    """The server with a controller, and what somebody does to them."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server

    def submit(self, name: str = "demo", **spec: Any) -> None:
        """Create a TrainJob."""
        body = trainjob_json(name, **spec)
        del body["metadata"]["uid"]
        self.server.create(TRAINJOBS, body)

    def status(self, name: str = "demo") -> J:
        """The status of a TrainJob."""
        found = self.server.find(TRAINJOBS, name)
        assert found is not None, f"there is no TrainJob {name}"
        status: J = found.get("status", {})
        return status

    def conditions(self, name: str = "demo") -> dict[str, str]:
        """The conditions of a TrainJob: type to status and reason."""
        return {each["type"]: f"{each['status']} {each['reason']}" for each in self.status(name).get("conditions", [])}

    def report(self, name: str = "demo", *, end: str = "", **counts: int) -> None:
        """Let the JobSet controller report: counts of the job `node`, and an end (Completed or Failed)."""
        jobs = [{"name": "node", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0, **counts}]
        status: J = {"replicatedJobsStatus": jobs}
        if end:
            words = {
                "reason": f"All{end}",
                "message": "done",
                "lastTransitionTime": format_time(self.server.clock.now()),
            }
            status["conditions"] = [{"type": end, "status": "True", **words}]
        self.server.change(JOBSETS, name, {"status": status})

    async def wait(self, seconds: float = 0.3) -> None:
        """Let time pass, and all that can happen happen."""
        await asyncio.sleep(seconds)
        await settle()


@asynccontextmanager
async def training_cluster(clock: Clock, *runtimes: J) -> AsyncIterator[TrainingCluster]:
    """A server with these runtimes, and a controller that has started."""
    async with idle_cluster(clock, *runtimes) as cluster, controller(cluster.server, clock):
        yield cluster


@asynccontextmanager
async def idle_cluster(clock: Clock, *runtimes: J) -> AsyncIterator[TrainingCluster]:
    """A server with these runtimes, by default the one that TrainJobs refer to."""
    async with api_server(clock, RESOURCES) as server:
        for each in runtimes or (runtime(mlPolicy={"numNodes": 2, "torch": {}}),):
            resource = CLUSTER_TRAINING_RUNTIMES if each["kind"].startswith("Cluster") else TRAINING_RUNTIMES
            server.create(resource, each)
        yield TrainingCluster(server)


@asynccontextmanager
async def controller(server: ApiServer, clock: Clock, **gates: bool) -> AsyncIterator[None]:
    """A controller for the time that it is needed, once its caches are complete."""
    config = ConnectionConfig(server.url, tls=TlsConfig(insecure=True))
    operator = _build_operator(config, clock, open_gates(gates))
    task = asyncio.create_task(operator.run(), name="operator")
    await operator.cache.wait_synced()
    await settle()
    try:
        yield
    finally:
        operator.request_stop()
        await task


def _build_operator(config: ConnectionConfig, clock: Clock, gates: Collection[Gate]) -> Operator:
    """The TrainJob controller alone, without webhook, progress server and configuration file."""
    operator = Operator(config, OperatorSettings("ktrainer"), clock=clock, terminator=Patient())
    view = ClusterView(operator)
    dependencies = Dependencies(reader=view, make_ssh_keys=make_ssh_keys, make_curve_keys=make_curve_keys)
    add_controllers(operator, view, build_training(dependencies), Configuration(), gates)
    return operator
