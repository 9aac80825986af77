from typing import Any

import pytest

from ktrainer.framework.info import Info
from ktrainer.plugins.jobset.podspec import set_initializers, set_trainer
from support.training import container, env_of, info_of, initializer, job, runtime, trainjob


def with_trainer(value: dict[str, Any], **trainer: Any) -> Info:
    wanted = trainjob(trainer=trainer)
    info = info_of(value, wanted)
    set_trainer(info, wanted)
    return info


def test_the_trainer_should_set_image_command_arguments_and_variables() -> None:
    node = job(
        "node", "trainer", container(command=["a"], args=["b"], env=[{"name": "A", "value": "0"}]), container("side")
    )
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": ""}]
    info = with_trainer(runtime(node), image="mine:2", command=["c", "d"], args=["e"], env=env)
    main, side = info.pod_sets[0].containers
    assert (main.spec["image"], main.spec["command"], main.spec["args"]) == ("mine:2", ["c", "d"], ["e"])
    assert main.spec["env"] == env
    assert side.spec == container("side")


def test_what_the_trainer_does_not_say_should_stay_the_runtimes() -> None:
    node = job("node", "trainer", container(command=["a"], args=["b"]))
    main = with_trainer(runtime(node)).pod_sets[0].containers[0]
    assert main.spec == container(command=["a"], args=["b"])


def test_an_empty_command_should_be_that_of_the_image() -> None:
    node = job("node", "trainer", container(command=["a"], args=["b"]))
    main = with_trainer(runtime(node), command=[], args=[]).pod_sets[0].containers[0]
    assert main.spec == container()


def test_a_command_that_a_plugin_chose_should_win() -> None:
    wanted = trainjob(trainer={"command": ["a"], "args": ["b"]})
    info = info_of(runtime(), wanted)
    info.command, info.args = ["wrapped"], None
    set_trainer(info, wanted)
    assert info.pod_sets[0].containers[0].spec == container(command=["wrapped"])


def test_other_jobs_should_be_left_alone() -> None:
    jobs = (job("aux", None), job("node", "trainer", container("other")), job("late", "other"))
    info = with_trainer(runtime(*jobs), image="mine:2", env=[{"name": "A", "value": "1"}])
    assert [pods.containers[0].spec["image"] for pods in info.pod_sets] == ["img/node:1", "img/other:1", "img/node:1"]
    assert [env_of(pods.containers[0]) for pods in info.pod_sets] == [{}, {}, {}]


@pytest.mark.parametrize(("as_node", "env"), [(True, {"A": "1"}), (False, {})])
def test_variables_should_reach_the_nodes_beside_a_launcher_that_is_one(as_node: bool, env: dict[str, str]) -> None:
    value = runtime(job("launcher"), job("node", None), mlPolicy={"mpi": {"runLauncherAsNode": as_node}})
    info = with_trainer(value, image="mine:2", env=[{"name": "A", "value": "1"}])
    launcher, node = (pods.containers[0] for pods in info.pod_sets)
    assert env_of(launcher) == {"A": "1"}
    assert env_of(node) == env
    assert node.spec["image"] == "img/node:1"


def test_a_trainjob_without_a_trainer_should_change_nothing() -> None:
    wanted = trainjob()
    info = info_of(runtime(), wanted)
    set_trainer(info, wanted)
    assert info.pod_sets[0].containers[0].spec == container()


def with_initializer(*jobs: dict[str, Any], **sources: Any) -> Info:
    wanted = trainjob(initializer=sources)
    info = info_of(runtime(*jobs), wanted)
    set_initializers(info, wanted)
    return info


def test_an_initializer_should_know_what_to_download_and_with_what() -> None:
    before = {"env": [{"name": "STORAGE_URI", "value": "hf://old"}, {"name": "A", "value": "0"}]}
    jobs = (
        initializer("dataset-initializer", **before, envFrom=[{"configMapRef": {"name": "c"}}]),
        initializer("model-initializer"),
    )
    source = {"storageUri": "hf://new", "env": [{"name": "B", "value": ""}], "secretRef": {"name": "s"}}
    info = with_initializer(*jobs, dataset=source, model={"storageUri": "s3://m"})
    dataset, model = (pods.containers[0].spec for pods in info.pod_sets)
    assert dataset["env"] == [
        {"name": "STORAGE_URI", "value": "hf://new"},
        {"name": "A", "value": "0"},
        {"name": "B", "value": ""},
    ]
    assert dataset["envFrom"] == [{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}]
    assert model["env"] == [{"name": "STORAGE_URI", "value": "s3://m"}]
    assert "envFrom" not in model


def test_the_users_own_variable_should_win_over_the_uri() -> None:
    source = {"storageUri": "hf://a", "env": [{"name": "STORAGE_URI", "value": "hf://b"}]}
    info = with_initializer(initializer("dataset-initializer"), dataset=source)
    assert env_of(info.pod_sets[0].containers[0]) == {"STORAGE_URI": "hf://b"}


def test_initializers_should_be_found_by_their_ancestor() -> None:
    named = job("download", "dataset-initializer", container("dataset-initializer"), container("side"))
    other = job("dataset-initializer", None, container("dataset-initializer"))
    info = with_initializer(named, other, dataset={"storageUri": "hf://a"})
    assert [env_of(pods.containers[0]) for pods in info.pod_sets] == [{"STORAGE_URI": "hf://a"}, {}]
    assert env_of(info.pod_sets[0].containers[1]) == {}


def test_without_an_initializer_nothing_should_change() -> None:
    info = with_initializer(initializer("dataset-initializer"))
    assert env_of(info.pod_sets[0].containers[0]) == {}
    wanted = trainjob()
    set_initializers(info, wanted)
    assert env_of(info.pod_sets[0].containers[0]) == {}
