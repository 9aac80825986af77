from ktrainer.plugins.jax import Jax
from support.training import container, dependencies, env_of, findings_of, info_of, job, runtime, trainjob

INDEX = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


def test_processes_should_know_each_other() -> None:
    info = info_of(runtime(mlPolicy={"numNodes": 3, "jax": {}}))
    Jax(dependencies()).enforce_ml_policy(info, trainjob(trainer={}))
    assert env_of(info.trainer_container) == {
        "JAX_NUM_PROCESSES": "3",
        "JAX_PROCESS_ID": INDEX,
        "JAX_COORDINATOR_ADDRESS": "demo-node-0-0.demo:29500",
    }
    assert info.trainer_container is not None
    assert info.trainer_container.spec["ports"] == [{"containerPort": 29500}]


def test_the_variables_should_be_set_without_a_trainer_in_the_trainjob() -> None:
    info = info_of(runtime(mlPolicy={"jax": {}}), wanted := trainjob())
    Jax(dependencies()).enforce_ml_policy(info, wanted)
    assert "JAX_PROCESS_ID" in env_of(info.trainer_container)


def test_the_coordinator_should_be_found_by_job_name_and_subdomain() -> None:
    info = info_of(runtime(job("worker"), template={"network": {"subdomain": "sub"}}, mlPolicy={"jax": {}}))
    Jax(dependencies()).enforce_ml_policy(info, trainjob(trainer={}))
    assert env_of(info.trainer_container)["JAX_COORDINATOR_ADDRESS"] == "demo-worker-0-0.sub:29500"


def test_other_runtimes_should_be_left_alone() -> None:
    wanted = trainjob(trainer={"env": [{"name": "JAX_PROCESS_ID"}]})
    for value in (runtime(), runtime(mlPolicy={"torch": {}})):
        info = info_of(value)
        Jax(dependencies()).enforce_ml_policy(info, wanted)
        assert env_of(info.trainer_container) == {}
        assert findings_of(Jax(dependencies()), info, wanted).warnings == []


def test_a_runtime_without_a_training_container_should_be_left_alone() -> None:
    info = info_of(runtime(job("node", "trainer", container("other")), mlPolicy={"jax": {}}))
    Jax(dependencies()).enforce_ml_policy(info, trainjob(trainer={}))
    assert env_of(info.pod_sets[0].containers[0]) == {}


def test_variables_that_are_overridden_should_be_warned_of() -> None:
    info = info_of(runtime(mlPolicy={"jax": {}}))
    wanted = trainjob(trainer={"env": [{"name": "JAX_NUM_PROCESSES", "value": "7"}, {"name": "OK", "value": "1"}]})
    findings = findings_of(Jax(dependencies()), info, wanted)
    assert findings.errors == []
    assert findings.warnings == ["spec.trainer.env: JAX_NUM_PROCESSES replaces what the runtime sets"]
