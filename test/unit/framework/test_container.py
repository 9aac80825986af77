from typing import Any

import pytest

from ktrainer.framework.container import Container, EnvLog, add_volumes, env_var, field_env_var
from ktrainer.framework.errors import EnvConflict


def made(**spec: Any) -> Container:
    return Container({"name": "node", **spec}, EnvLog())


def test_a_new_variable_should_go_to_the_end_and_a_known_one_keep_its_place() -> None:
    container = made(env=[env_var("A", "1"), env_var("B", "1")])
    container.set_env(env_var("A", "2"), env_var("C", "2"))
    assert container.spec["env"] == [env_var("A", "2"), env_var("B", "1"), env_var("C", "2")]


def test_a_variable_from_a_field_should_replace_a_literal_value() -> None:
    container = made(env=[env_var("A", "1")])
    container.set_env(field_env_var("A", "metadata.name"))
    assert container.spec["env"] == [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]


def test_of_two_variables_of_one_name_the_first_should_be_replaced() -> None:
    container = made(env=[env_var("A", "1"), env_var("A", "2")])
    container.merge_env([env_var("A", "3")])
    assert container.spec["env"] == [env_var("A", "3"), env_var("A", "2")]


def test_nothing_to_set_should_leave_no_trace() -> None:
    container = made()
    container.merge_env([])
    container.add_mounts()
    assert container.spec == {"name": "node"}


def test_lists_of_the_template_should_be_replaced_and_not_written_to() -> None:
    before = [env_var("A", "1")]
    made(env=before).set_env(env_var("A", "2"))
    assert before == [env_var("A", "1")]


def test_only_literal_values_should_be_read() -> None:
    container = made(env=[env_var("A", "1"), field_env_var("B", "x")])
    assert [container.env_value(name) for name in "ABC"] == ["1", None, None]


def test_mounts_should_merge_by_their_path() -> None:
    container = made(volumeMounts=[{"name": "a", "mountPath": "/x"}])
    container.add_mounts({"name": "b", "mountPath": "/x"}, {"name": "b", "mountPath": "/y"})
    assert container.mounts == [{"name": "b", "mountPath": "/x"}, {"name": "b", "mountPath": "/y"}]


def test_volumes_should_merge_by_their_name() -> None:
    pod: dict[str, Any] = {"volumes": [{"name": "a", "emptyDir": {}}]}
    add_volumes(pod, {"name": "a", "secret": {}}, {"name": "b", "secret": {}})
    assert pod["volumes"] == [{"name": "a", "secret": {}}, {"name": "b", "secret": {}}]


@pytest.mark.parametrize(
    ("ports", "wanted"),
    [
        pytest.param([], [{"containerPort": 29500}], id="none"),
        pytest.param([{"containerPort": 8080}], [{"containerPort": 29500}], id="no name is a name"),
        pytest.param(
            [{"name": "a", "containerPort": 1}, {"containerPort": 2, "protocol": "TCP"}, {"containerPort": 3}],
            [{"name": "a", "containerPort": 1}, {"containerPort": 29500}, {"containerPort": 3}],
            id="the first without a name",
        ),
        pytest.param([{"name": "a", "containerPort": 29500}], [{"containerPort": 29500}], id="the same port"),
        pytest.param(
            [{"name": "a", "containerPort": 1}],
            [{"name": "a", "containerPort": 1}, {"containerPort": 29500}],
            id="named ports stay",
        ),
    ],
)
def test_a_port_should_take_the_place_of_its_like(ports: list[Any], wanted: list[Any]) -> None:
    container = made(ports=ports)
    container.expose(29500)
    assert container.spec["ports"] == wanted


def test_two_plugins_should_not_set_a_variable_differently() -> None:
    log = EnvLog()
    container = Container({"name": "node"}, log)
    log.writer = "one"
    container.set_env(env_var("A", "1"), env_var("B", "1"))
    log.writer = "two"
    container.set_env(env_var("B", "1"))
    with pytest.raises(EnvConflict, match=r"container node: the variable A .* by the plugin one"):
        container.set_env(env_var("A", "2"))


def test_a_plugin_should_be_free_to_change_its_mind_and_the_user_to_overrule_it() -> None:
    container = made()
    container.set_env(env_var("A", "1"))
    container.set_env(env_var("A", "2"))
    container.merge_env([env_var("A", "3")])
    assert container.env_value("A") == "3"


def test_containers_of_one_name_should_have_variables_of_their_own() -> None:
    log = EnvLog()
    first, second = Container({"name": "node"}, log), Container({"name": "node"}, log)
    log.writer = "one"
    first.set_env(env_var("A", "1"))
    log.writer = "two"
    second.set_env(env_var("A", "2"))
    assert (first.env_value("A"), second.env_value("A")) == ("1", "2")
