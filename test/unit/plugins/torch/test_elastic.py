from typing import Any

import pytest

from ktrainer.api.trainjob import TrainJob
from ktrainer.app.documents import run_now
from ktrainer.framework.info import Info
from ktrainer.machinery.admission.review import MAX_WARNING_CHARS
from ktrainer.plugins.torch.plugin import Torch
from support.training import UID, dependencies, env_of, errors_of, findings_of, info_of, runtime, trainjob
from support.validity import assert_valid

METRIC = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}


def elastic(**policy: Any) -> dict[str, Any]:
    return runtime(mlPolicy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 5, **policy}}})


def enforced(wanted: TrainJob, **policy: Any) -> Info:
    info = info_of(elastic(**policy), wanted)
    Torch(dependencies()).enforce_ml_policy(info, wanted)
    return info


def test_torchrun_should_be_told_bounds_and_rendezvous_instead_of_ranks() -> None:
    assert env_of(enforced(trainjob(trainer={}), maxRestarts=3).trainer_container) == {
        "PET_NNODES": "2:5",
        "PET_NPROC_PER_NODE": "1",
        "PET_RDZV_BACKEND": "c10d",
        "PET_RDZV_ENDPOINT": "demo-node-0-0.demo:29500",
        "PET_RDZV_ID": "demo",
        "PET_MAX_RESTARTS": "3",
    }


def test_restarts_should_be_torchruns_own_where_the_runtime_says_nothing() -> None:
    assert "PET_MAX_RESTARTS" not in env_of(enforced(trainjob()).trainer_container)


@pytest.mark.parametrize(("wanted", "count"), [(None, 2), (2, 2), (4, 4), (5, 5), (1, 2), (6, 2)])
def test_the_number_of_nodes_should_stay_within_bounds(wanted: int | None, count: int) -> None:
    info = enforced(trainjob(trainer={"numNodes": wanted} if wanted else {}))
    assert info.trainer is not None
    assert info.trainer.count == count


@pytest.mark.parametrize(("wanted", "refused"), [(1, True), (2, False), (5, False), (6, True)])
def test_a_number_out_of_bounds_should_be_refused(wanted: int, refused: bool) -> None:
    new = trainjob(trainer={"numNodes": wanted})
    findings = findings_of(Torch(dependencies()), info_of(elastic(), new), new)
    assert errors_of(findings) == []
    findings.refuse_all()
    assert errors_of(findings) == [("INVALID", "spec.trainer.numNodes")] * refused


def test_metrics_should_make_an_autoscaler_of_the_trainjob() -> None:
    (component,) = run_now(Torch(dependencies()).build(info_of(elastic(metrics=[METRIC])), trainjob()))
    body = component.body
    assert body["metadata"]["ownerReferences"][0]["uid"] == UID
    assert body["spec"] == {
        "scaleTargetRef": {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "demo"},
        "minReplicas": 2,
        "maxReplicas": 5,
        "metrics": [METRIC],
    }
    assert_valid(body)


@pytest.mark.parametrize(
    ("nodes", "metrics", "warned"), [(None, [METRIC], True), (3, [METRIC], False), (None, [], False)]
)
def test_an_autoscaler_without_a_number_to_change_should_be_warned_of(
    nodes: int | None, metrics: list[Any], warned: bool
) -> None:
    new = trainjob(trainer={"numNodes": nodes} if nodes else {})
    warnings = findings_of(Torch(dependencies()), info_of(elastic(metrics=metrics), new), new).warnings
    expected = (
        "spec.trainer.numNodes: the runtime's autoscaler changes only a number that is given; start with one, such as 2"
    )
    assert (warnings, len(expected) <= MAX_WARNING_CHARS) == ([expected] * warned, True)


def test_without_metrics_there_should_be_no_autoscaler() -> None:
    assert run_now(Torch(dependencies()).build(info_of(elastic()), trainjob())) == []
    assert run_now(Torch(dependencies()).build(info_of(runtime(mlPolicy={"torch": {}})), trainjob())) == []
    assert run_now(Torch(dependencies()).build(info_of(), trainjob())) == []
