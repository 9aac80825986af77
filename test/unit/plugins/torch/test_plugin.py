from typing import Any

import pytest

from ktrainer.api.trainjob import TrainJob
from ktrainer.framework.info import Info
from ktrainer.plugins.torch.names import RESERVED
from ktrainer.plugins.torch.plugin import Torch
from support.training import container, dependencies, env_of, errors_of, findings_of, info_of, job, runtime, trainjob

INDEX = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}
PET = {
    "PET_NNODES": "2",
    "PET_NPROC_PER_NODE": "1",
    "PET_NODE_RANK": INDEX,
    "PET_MASTER_ADDR": "demo-node-0-0.demo",
    "PET_MASTER_PORT": "29500",
}


def torch(*jobs: dict[str, Any], template: dict[str, Any] | None = None, **policy: Any) -> dict[str, Any]:
    return runtime(*jobs, template=template, mlPolicy={"numNodes": 2, "torch": policy})


def enforced(value: dict[str, Any], wanted: TrainJob | None = None) -> Info:
    wanted = wanted or trainjob(trainer={})
    info = info_of(value, wanted)
    Torch(dependencies()).enforce_ml_policy(info, wanted)
    return info


def test_torchrun_should_be_told_all_it_needs() -> None:
    info = enforced(torch())
    assert list(env_of(info.trainer_container).items()) == list(PET.items())
    assert info.trainer_container is not None
    assert info.trainer_container.spec["ports"] == [{"containerPort": 29500}]


def test_the_variables_should_be_set_without_a_trainer_in_the_trainjob() -> None:
    assert env_of(enforced(torch(), trainjob()).trainer_container) == PET


def test_the_users_variables_should_come_between_the_templates_and_ours() -> None:
    node = job("node", "trainer", container(env=[{"name": "A", "value": "0"}, {"name": "PET_NNODES", "value": "9"}]))
    info = enforced(torch(node), trainjob(trainer={"env": [{"name": "U", "value": "1"}, {"name": "A", "value": "1"}]}))
    names = list(env_of(info.trainer_container))
    assert names == [
        "A",
        "PET_NNODES",
        "U",
        "PET_NPROC_PER_NODE",
        "PET_NODE_RANK",
        "PET_MASTER_ADDR",
        "PET_MASTER_PORT",
    ]
    assert env_of(info.trainer_container)["A"] == "1"


def test_the_master_should_be_found_by_job_name_and_subdomain() -> None:
    info = enforced(torch(job("worker"), template={"network": {"subdomain": "sub"}}))
    assert env_of(info.trainer_container)["PET_MASTER_ADDR"] == "demo-worker-0-0.sub"


def test_processes_should_be_counted_by_the_merged_resources() -> None:
    node = job("node", "trainer", container(resources={"limits": {"nvidia.com/gpu": "8"}}))
    info = enforced(torch(node), trainjob(trainer={"resourcesPerNode": {"limits": {"memory": "1Gi"}}}))
    assert env_of(info.trainer_container)["PET_NPROC_PER_NODE"] == "auto"


def test_other_containers_should_get_the_variables_where_the_runtime_says_so() -> None:
    node = job(
        "node", "trainer", container(), container("same"), pod={"initContainers": [container("same"), container("pre")]}
    )
    targets = [{"jobName": "node", "containerNames": ["same", "pre"]}, {"jobName": "aux", "containerNames": ["x"]}]
    value = torch(job("aux", None, container("x")), node, envInjection={"targets": targets})
    info = enforced(value, trainjob(trainer={"env": [{"name": "U", "value": "1"}]}))
    aux, trainer = info.pod_sets
    assert (
        env_of(trainer.container("same")) == env_of(trainer.init_container("pre")) == env_of(aux.container("x")) == PET
    )
    assert env_of(trainer.init_container("same")) == {}
    assert "ports" not in trainer.containers[1].spec


def test_other_containers_should_get_the_variables_under_torchtune_too() -> None:
    node = job("node", "trainer", container(), container("side"))
    value = torch(node, envInjection={"targets": [{"jobName": "node", "containerNames": ["side"]}]})
    info = enforced(value, trainjob(runtime="torchtune-llama3.3-70b", trainer={"command": ["tune", "run"]}))
    assert env_of(info.pod_sets[0].container("side")) == PET
    assert list(env_of(info.trainer_container)) == ["PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK"]


def test_without_a_trainers_job_the_others_should_still_be_served() -> None:
    value = torch(
        job("aux", None, container("x")), envInjection={"targets": [{"jobName": "aux", "containerNames": ["x"]}]}
    )
    assert env_of(enforced(value).pod_sets[0].container("x")) == {**PET, "PET_NNODES": "1"}


def test_torchtune_should_take_over_what_all_trainers_of_the_runtime_say() -> None:
    jobs = (
        job(
            "a",
            "trainer",
            container(command=["tune", "run", "output_dir=/a"]),
            container("x", command=["output_dir=/x"]),
        ),
        job("b", "trainer", container(command=["tokenizer.path=/b"])),
        job("c", None, container(command=["output_dir=/c"])),
    )
    wanted = trainjob(runtime="torchtune-llama3.2-1b", trainer={"command": ["tune", "run"], "numProcPerNode": 1})
    command = enforced(runtime(*jobs, name="torchtune-llama3.2-1b", mlPolicy={"torch": {}}), wanted).command
    assert command is not None
    assert command[-2:] == ["output_dir=/a", "tokenizer.path=/b"]


def test_torchtune_should_get_its_command_and_leave_the_trainjob_alone() -> None:
    node = job("node", "trainer", container(command=["tune", "run", "output_dir=/o", "dataset.source=x"]))
    wanted = trainjob(runtime="torchtune-llama3.2-1b", trainer={"command": ["tune", "run"], "numProcPerNode": 1})
    value = runtime(node, name="torchtune-llama3.2-1b", mlPolicy={"torch": {}})
    command = [
        "tune",
        "run",
        "full_finetune_single_device",
        "--config",
        "llama3_2/1B_full_single_device",
        "output_dir=/o",
    ]
    for _ in range(2):
        assert enforced(value, wanted).command == command
    assert wanted.spec.trainer is not None
    assert wanted.spec.trainer.command == ["tune", "run"]


def test_other_runtimes_should_be_left_alone() -> None:
    wanted = trainjob(trainer={"env": [{"name": "PET_NNODES", "value": "1"}]})
    for value in (runtime(), runtime(mlPolicy={"jax": {}})):
        assert env_of(enforced(value, wanted).trainer_container) == {}
        assert findings_of(Torch(dependencies()), info_of(value, wanted), wanted).errors == []


def test_a_container_that_is_not_there_should_fail_the_pass() -> None:
    with pytest.raises(LookupError, match="no container x in the job nope"):
        enforced(torch(envInjection={"targets": [{"jobName": "nope", "containerNames": ["x"]}]}))


@pytest.mark.parametrize(
    "target", [{"jobName": "nope", "containerNames": ["a"]}, {"jobName": "node", "containerNames": ["a"]}]
)
def test_a_target_of_env_injection_should_exist(target: dict[str, Any]) -> None:
    value = torch(envInjection={"targets": [target]})
    findings = findings_of(Torch(dependencies()), info_of(value), trainjob())
    assert errors_of(findings) == [("INVALID", "spec.runtimeRef")]


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_reserved_variables_should_be_refused(name: str) -> None:
    wanted = trainjob(trainer={"env": [{"name": "OK", "value": "1"}, {"name": name, "value": "1"}]})
    findings = findings_of(Torch(dependencies()), info_of(torch(), wanted), wanted)
    assert errors_of(findings) == [("INVALID", "spec.trainer.env")]
    assert findings.errors[0].value == [name]


def test_variables_of_rendezvous_should_be_reserved_for_elastic_runtimes_only() -> None:
    wanted = trainjob(trainer={"env": [{"name": "PET_RDZV_ID", "value": "1"}]})
    assert findings_of(Torch(dependencies()), info_of(torch(), wanted), wanted).errors == []
    elastic = runtime(mlPolicy={"torch": {"elasticPolicy": {"minNodes": 1, "maxNodes": 2}}})
    findings = findings_of(Torch(dependencies()), info_of(elastic, wanted), wanted)
    assert errors_of(findings) == [("INVALID", "spec.trainer.env")]
