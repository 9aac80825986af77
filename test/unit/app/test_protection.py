from __future__ import annotations

import pytest

from ktrainer.api.configuration import Configuration, Controller
from ktrainer.api.gates import Gate
from ktrainer.app.clusterview import ClusterView
from ktrainer.app.protection import add_protection
from ktrainer.client.config.config import ConnectionConfig
from ktrainer.machinery.operator import Operator, OperatorSettings


@pytest.mark.parametrize("gates", [frozenset[Gate](), frozenset(Gate)])
async def test_both_kinds_of_runtimes_should_get_a_controller_whatever_the_gate(gates: frozenset[Gate]) -> None:
    concurrency = {"ClusterTrainingRuntime.trainer.kubeflow.org": 3}
    configuration = Configuration(controller=Controller(group_kind_concurrency=concurrency))
    operator = Operator(ConnectionConfig("http://127.0.0.1:1"), OperatorSettings("test"))
    add_protection(operator, ClusterView(operator), configuration, gates)
    workers = {
        name: operator.registry.get_sample_value("controller_runtime_max_concurrent_reconciles", {"controller": name})
        for name in ("trainingruntime_controller", "clustertrainingruntime_controller")
    }
    await operator.connection.close()
    assert workers == {"trainingruntime_controller": 1, "clustertrainingruntime_controller": 3}
