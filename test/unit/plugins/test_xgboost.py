import pytest

from ktrainer.plugins.xgboost import RESERVED, XGBoost
from support.training import container, dependencies, env_of, errors_of, findings_of, info_of, job, runtime, trainjob

INDEX = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


def test_workers_should_find_the_tracker() -> None:
    info = info_of(runtime(mlPolicy={"numNodes": 2, "xgboost": {}}), wanted := trainjob())
    XGBoost(dependencies()).enforce_ml_policy(info, wanted)
    assert env_of(info.trainer_container) == {
        "DMLC_TRACKER_URI": "demo-node-0-0.demo",
        "DMLC_TRACKER_PORT": "29500",
        "DMLC_TASK_ID": INDEX,
        "DMLC_NUM_WORKER": "2",
    }
    assert info.trainer_container is not None
    assert info.trainer_container.spec["ports"] == [{"containerPort": 29500}]


def test_each_gpu_should_have_a_worker_by_the_merged_resources() -> None:
    node = job("node", "trainer", container(resources={"limits": {"nvidia.com/gpu": "4"}}))
    wanted = trainjob(trainer={"resourcesPerNode": {"limits": {"memory": "1Gi"}}})
    info = info_of(runtime(node, mlPolicy={"numNodes": 3, "xgboost": {}}), wanted)
    XGBoost(dependencies()).enforce_ml_policy(info, wanted)
    assert env_of(info.trainer_container)["DMLC_NUM_WORKER"] == "12"


def test_other_runtimes_should_be_left_alone() -> None:
    info = info_of(runtime(mlPolicy={"jax": {}}))
    XGBoost(dependencies()).enforce_ml_policy(info, wanted := trainjob(trainer={"env": [{"name": "DMLC_TASK_ID"}]}))
    assert env_of(info.trainer_container) == {}
    assert findings_of(XGBoost(dependencies()), info, wanted).errors == []


@pytest.mark.parametrize("name", RESERVED)
def test_reserved_variables_should_be_refused_one_by_one(name: str) -> None:
    wanted = trainjob(trainer={"env": [{"name": "OK", "value": "1"}, {"name": name, "value": "1"}]})
    findings = findings_of(XGBoost(dependencies()), info_of(runtime(mlPolicy={"xgboost": {}})), wanted)
    assert errors_of(findings) == [("FORBIDDEN", "spec.trainer.env[1]")]
