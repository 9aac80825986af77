from typing import Any

import pytest

from ktrainer.framework.info import Info
from ktrainer.runtime.assembly import assemble
from support.training import blueprint, container, env_of, info_of, job, runtime, trainjob


def patch(manager: str, *jobs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    template: dict[str, Any] = {"spec": {"replicatedJobs": list(jobs)}}
    if metadata:
        template["metadata"] = metadata
    return {"manager": manager, "trainingRuntimeSpec": {"template": template}}


def change(name: str, spec: dict[str, Any], metadata: dict[str, Any] | None = None) -> dict[str, Any]:
    pods = {"spec": spec, **({"metadata": metadata} if metadata else {})}
    return {"name": name, "template": {"spec": {"template": pods}}}


@pytest.mark.parametrize(
    ("policy", "of_job", "count"),
    [
        pytest.param({"numNodes": 3}, 5, 5, id="the TrainJob's"),
        pytest.param({"numNodes": 3}, None, 3, id="the runtime's"),
        pytest.param({}, None, 1, id="one, whatever the template says"),
        pytest.param(None, None, 7, id="the template's without a policy"),
    ],
)
def test_the_trainers_pods_should_be_counted(policy: Any, of_job: int | None, count: int) -> None:
    node = job()
    node["template"]["spec"]["parallelism"] = 7
    value = runtime(node, **({} if policy is None else {"mlPolicy": policy}))
    info = info_of(value, trainjob(trainer={"numNodes": of_job} if of_job else {}))
    assert info.trainer is info.sized is info.pod_sets[0]
    assert info.pod_sets[0].count == count


@pytest.mark.parametrize(
    ("jobs", "sized"),
    [
        pytest.param([job("launcher"), job("node", None)], "node", id="the nodes"),
        pytest.param([job("launcher")], "launcher", id="the trainer where there are none"),
        pytest.param([job("launcher", None)], None, id="nothing"),
    ],
)
def test_under_mpi_the_nodes_should_be_what_is_sized(jobs: list[dict[str, Any]], sized: str | None) -> None:
    found = info_of(runtime(*jobs, mlPolicy={"mpi": {}})).sized
    assert (found.name if found else None) == sized


def test_of_several_trainers_the_first_should_follow_the_trainjob() -> None:
    info = info_of(runtime(job("a"), job("b"), mlPolicy={"numNodes": 2}), trainjob(trainer={"numNodes": 3}))
    assert [pods.count for pods in info.pod_sets] == [3, 2]


def test_labels_and_annotations_should_be_laid_over_each_other() -> None:
    value = runtime()
    value["spec"]["template"]["metadata"] = {"labels": {"a": "rt", "b": "rt", "c": "rt"}, "annotations": {"n": "rt"}}
    wanted = trainjob(
        labels={"b": "job", "c": "job"},
        annotations={"n": "job"},
        runtimePatches=[
            patch("a.io/b", labels={"c": "one"}, name="ignored"),
            patch("c.io/d", annotations={"n": "two"}),
        ],
    )
    info = info_of(value, wanted)
    assert info.labels == {"a": "rt", "b": "job", "c": "one"}
    assert info.annotations == {"n": "two"}


def test_overrides_should_be_merged_in_order_and_patches_after_them() -> None:
    value = runtime(job("aux", None), job("node", "trainer", pod={"nodeSelector": {"a": "0", "b": "0"}}))
    wanted = trainjob(
        podTemplateOverrides=[
            {"targetJobs": [{"name": "node"}, {"name": "aux"}], "spec": {"nodeSelector": {"b": "1", "c": "1"}}},
            {
                "targetJobs": [{"name": "node"}],
                "metadata": {"labels": {"l": "2"}},
                "spec": {"nodeSelector": {"c": "2"}},
            },
        ],
        runtimePatches=[patch("a.io/b", change("node", {"nodeSelector": {"d": "3"}}, {"labels": {"m": "3"}}))],
    )
    aux, node = info_of(value, wanted).pod_sets
    assert node.pod_spec["nodeSelector"] == {"a": "0", "b": "1", "c": "2", "d": "3"}
    assert node.pod_template["metadata"]["labels"] == {"l": "2", "m": "3"}
    assert aux.pod_spec["nodeSelector"] == {"b": "1", "c": "1"}


def test_overrides_should_bring_labels_and_annotations_to_the_pods_and_no_other_metadata() -> None:
    metadata = {"labels": {"l": "1"}, "name": "n", "namespace": "other", "finalizers": ["a.io/b"]}
    for given, wanted in ((metadata, {"labels": {"l": "1"}}), ({"name": "n"}, None)):
        changed = trainjob(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "metadata": given}])
        assert info_of(runtime(), changed).pod_sets[0].pod_template.get("metadata") == wanted


def test_what_is_empty_in_a_change_should_not_clear_what_the_runtime_says() -> None:
    side = container("side", env=[{"name": "K", "value": "0"}])
    pod = {"tolerations": [{"key": "a"}], "serviceAccountName": "robot"}
    spec = {"tolerations": [], "containers": [{"name": "side", "env": [{"name": "K", "value": ""}]}]}
    for wanted in (
        trainjob(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": spec}]),
        trainjob(runtimePatches=[patch("a.io/b", change("node", spec))]),
    ):
        pods = info_of(runtime(job("node", "trainer", container(), side, pod=pod)), wanted).pod_sets[0]
        assert pods.pod_spec["tolerations"] == [{"key": "a"}]
        assert env_of(pods.container("side")) == {"K": "0"}
        assert pods.pod_spec["serviceAccountName"] == "robot"


def test_lists_should_merge_as_kubernetes_merges_them() -> None:
    side = container("side", env=[{"name": "K", "value": "0"}, {"name": "L", "value": "0"}])
    mount = container(volumeMounts=[{"name": "v", "mountPath": "/v"}])
    pod = {
        "tolerations": [{"key": "a"}],
        "imagePullSecrets": [{"name": "p"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }
    spec = {
        "tolerations": [{"key": "b", "operator": "Exists"}],
        "imagePullSecrets": [{"name": "q"}],
        "schedulingGates": [{"name": "g"}],
        "volumes": [{"name": "w", "emptyDir": {"sizeLimit": "1024Mi"}}],
        "containers": [
            {"name": "side", "env": [{"name": "L", "value": "1"}, {"name": "N", "value": "1"}]},
            {"name": "node", "volumeMounts": [{"name": "w", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]},
        ],
    }
    wanted = trainjob(runtimePatches=[patch("a.io/b", change("node", spec))])
    pods = info_of(runtime(job("node", "trainer", mount, side, pod=pod)), wanted).pod_sets[0]
    assert pods.pod_spec["tolerations"] == [{"key": "b", "operator": "Exists"}]
    assert {each["name"] for each in pods.pod_spec["imagePullSecrets"]} == {"p", "q"}
    assert pods.pod_spec["schedulingGates"] == [{"name": "g"}]
    assert {"name": "w", "emptyDir": {"sizeLimit": "1Gi"}} in pods.pod_spec["volumes"]
    assert [each.name for each in pods.containers] == ["side", "node"]
    main = pods.container("node")
    assert env_of(pods.container("side")) == {"K": "0", "L": "1", "N": "1"}
    assert main is not None
    assert main.mounts == [{"name": "w", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]
    assert main.spec["image"] == "img/node:1"


def test_jobs_should_go_back_to_the_templates_order() -> None:
    wanted = trainjob(runtimePatches=[patch("a.io/b", change("node", {}), change("a", {}))])
    info = info_of(runtime(job("a", None), job("b", None), job()), wanted)
    assert [pods.name for pods in info.pod_sets] == ["a", "b", "node"]


def test_without_changes_the_template_should_be_as_the_runtime_has_it() -> None:
    wanted = trainjob(runtimePatches=[patch("a.io/b", change("node", {"serviceAccountName": "x"}))])
    info = assemble(blueprint(), wanted, changes=False)
    assert isinstance(info, Info)
    assert "serviceAccountName" not in info.pod_sets[0].pod_spec


PATCHED_POD = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec"


def test_values_of_wrong_types_should_all_be_told_also_where_they_are_zero() -> None:
    side = {"containers": [{"name": "side", "env": [{"name": "A", "value": 0}, {"name": "B", "value": False}]}]}
    given: dict[str, Any] = {
        "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"tolerations": [{"operator": False}]}}],
        "runtimePatches": [patch("a.io/b", change("node", side))],
    }
    found = assemble(blueprint(runtime(job("node", "trainer", container(), container("side")))), trainjob(**given))
    assert isinstance(found, list)
    assert [str(error.path) for error in found] == [
        "spec.podTemplateOverrides[0].spec.tolerations[0].operator",
        f"{PATCHED_POD}.containers[0].env[0].value",
        f"{PATCHED_POD}.containers[0].env[1].value",
    ]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"runtimePatches": [patch("a.io/b", change("node", {"volumes": [{"emptyDir": {}}]}))]}, "spec.runtimePatches"),
        (
            {"runtimePatches": [patch("a.io/b", change("node", {"affinity": {"nodeAffinity": []}}))]},
            f"{PATCHED_POD}.affinity.nodeAffinity",
        ),
        (
            {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"volumes": [{"emptyDir": {}}]}}]},
            "spec.podTemplateOverrides",
        ),
        (
            {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": {"affinity": {"nodeAffinity": 1}}}]},
            "spec.podTemplateOverrides[0].spec.affinity.nodeAffinity",
        ),
    ],
)
def test_a_change_that_does_not_fit_should_be_a_field_error(spec: dict[str, Any], path: str) -> None:
    value = runtime(job("node", "trainer", pod={"volumes": [{"name": "v", "emptyDir": {}}]}))
    found = assemble(blueprint(value), trainjob(**spec))
    assert isinstance(found, list)
    assert [str(error.path) for error in found] == [path]


def resources(of_runtime: Any, of_job: Any, **spec: Any) -> tuple[Any, Any]:
    node = job("node", "trainer", container(resources=of_runtime))
    info = info_of(runtime(node, **spec), trainjob(trainer={"resourcesPerNode": of_job}))
    return info.pod_sets[0].containers[0].resources, info.node_resources


@pytest.mark.parametrize("spec", [{"mlPolicy": {"torch": {}}}, {}], ids=["with a policy", "without"])
def test_resources_should_merge_by_name_and_keep_claims(spec: dict[str, Any]) -> None:
    of_runtime = {
        "limits": {"nvidia.com/gpu": 8, "memory": "1Gi"},
        "requests": {"cpu": "1000m"},
        "claims": [{"name": "a"}, {"name": "b", "request": "x"}],
    }
    of_job = {"limits": {"memory": "2048Mi"}, "requests": {"memory": 1}, "claims": [{"name": "b", "request": "y"}]}
    wanted = {
        "limits": {"nvidia.com/gpu": "8", "memory": "2Gi"},
        "requests": {"cpu": "1", "memory": "1"},
        "claims": [{"name": "a"}, {"name": "b", "request": "y"}],
    }
    assert resources(of_runtime, of_job, **spec) == (wanted, wanted)


def test_what_a_node_has_should_not_be_read_off_a_job_that_gets_nothing_of_it() -> None:
    sibling = job("node", None, container(resources={"limits": {"nvidia.com/gpu": "4"}}))
    value = runtime(
        sibling, job("main", "trainer", container(resources={"limits": {"cpu": "3"}})), mlPolicy={"xgboost": {}}
    )
    wanted = trainjob(trainer={"resourcesPerNode": {"limits": {"memory": "1Gi"}}})
    assert info_of(value, wanted).node_resources == {"limits": {"cpu": "3", "memory": "1Gi"}}


@pytest.mark.parametrize(("as_node", "of_node"), [(True, {"limits": {"cpu": "2"}}), (False, {})])
def test_resources_should_reach_the_nodes_beside_a_launcher_that_is_one(as_node: bool, of_node: Any) -> None:
    value = runtime(job("launcher"), job("node", None), mlPolicy={"mpi": {"runLauncherAsNode": as_node}})
    info = info_of(value, trainjob(trainer={"resourcesPerNode": {"limits": {"cpu": "2"}}}))
    launcher, node = (pods.containers[0].resources for pods in info.pod_sets)
    assert launcher == {"limits": {"cpu": "2"}}
    assert node == of_node
    assert info.node_resources == {"limits": {"cpu": "2"}}


def test_the_trainjobs_words_should_be_handed_to_the_plugins_as_copies() -> None:
    wanted = trainjob(trainer={"command": ["a"], "args": []})
    info = info_of(None, wanted)
    assert (info.command, info.args) == (["a"], [])
    assert info.command is not None
    info.command.append("b")
    assert wanted.spec.trainer is not None
    assert wanted.spec.trainer.command == ["a"]
    assert (info_of(None, trainjob()).command, info_of(None, trainjob(trainer={})).args) == (None, None)
