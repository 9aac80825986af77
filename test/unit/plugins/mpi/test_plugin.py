from typing import Any

import pytest

from ktrainer.api.trainjob import TrainJob
from ktrainer.app.documents import run_now
from ktrainer.framework.component import Write
from ktrainer.framework.info import Info
from ktrainer.plugins.mpi.plugin import Mpi
from support.training import (
    UID,
    container,
    dependencies,
    env_of,
    errors_of,
    findings_of,
    info_of,
    job,
    runtime,
    trainjob,
)
from support.validity import assert_valid

LAUNCHER = job("launcher", "trainer")
NODE = job("node", None)
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "demo-mpi-ssh-auth", "namespace": "team-a"},
}


def mpi(*jobs: dict[str, Any], nodes: int | None = None, template: Any = None, **policy: Any) -> dict[str, Any]:
    numbers = {"numNodes": nodes} if nodes else {}
    return runtime(*(jobs or (LAUNCHER, NODE)), template=template, mlPolicy={**numbers, "mpi": policy})


def enforced(value: dict[str, Any], wanted: TrainJob | None = None) -> Info:
    wanted = wanted or trainjob(trainer={})
    info = info_of(value, wanted)
    Mpi(dependencies()).enforce_ml_policy(info, wanted)
    return info


def hostfile(value: dict[str, Any], wanted: TrainJob | None = None) -> str:
    wanted = wanted or trainjob(trainer={})
    *_, component = run_now(Mpi(dependencies()).build(enforced(value, wanted), wanted))
    text: str = component.body["data"]["hostfile"]
    return text


@pytest.mark.parametrize(
    ("of_job", "of_runtime", "policy", "counts"),
    [
        pytest.param(4, None, {}, (1, 4), id="the TrainJob's number"),
        pytest.param(None, 3, {}, (1, 3), id="the runtime's number"),
        pytest.param(4, 3, {}, (1, 4), id="the TrainJob's before the runtime's"),
        pytest.param(4, None, {"runLauncherAsNode": True}, (1, 3), id="the launcher is a node"),
        pytest.param(1, None, {"runLauncherAsNode": True}, (1, 1), id="at least one"),
        pytest.param(None, None, {}, (1, 1), id="nobody's"),
    ],
)
def test_the_nodes_should_be_counted_and_the_launcher_be_one(
    of_job: int | None, of_runtime: int | None, policy: Any, counts: tuple[int, int]
) -> None:
    info = enforced(mpi(nodes=of_runtime, **policy), trainjob(trainer={"numNodes": of_job} if of_job else {}))
    assert tuple(pods.count for pods in info.pod_sets) == counts
    assert info.sized is info.pod_sets[1]


def test_without_any_number_the_templates_parallelism_should_stay() -> None:
    node = job("node", None)
    node["template"]["spec"]["parallelism"] = 3
    assert [pods.count for pods in enforced(mpi(LAUNCHER, node)).pod_sets] == [1, 3]


def test_a_trainer_named_node_should_be_counted_as_one() -> None:
    info = enforced(mpi(job("node", "trainer")), trainjob(trainer={"numNodes": 3}))
    assert [pods.count for pods in info.pod_sets] == [3]


def test_keys_should_be_mounted_in_launcher_and_nodes_and_the_hostfile_in_the_launcher() -> None:
    side = container("side")
    info = enforced(mpi(job("launcher", "trainer", container(), side), NODE, job("aux", None), sshAuthMountPath="/s"))
    launcher, node, aux = info.pod_sets
    keys, hosts = {"name": "mpi-ssh-auth", "mountPath": "/s"}, {"name": "mpi-hostfile", "mountPath": "/etc/mpi"}
    assert launcher.containers[0].mounts == [keys, hosts]
    assert node.containers[0].mounts == [keys]
    assert launcher.containers[1].mounts == aux.containers[0].mounts == []
    assert [volume["name"] for volume in launcher.pod_spec["volumes"]] == ["mpi-ssh-auth", "mpi-hostfile"]
    assert node.pod_spec["volumes"] == [
        {
            "name": "mpi-ssh-auth",
            "secret": {
                "secretName": "demo-mpi-ssh-auth",
                "defaultMode": 0o400,
                "items": [
                    {"key": "ssh-privatekey", "path": "id_rsa", "mode": 0o640},
                    {"key": "ssh-publickey", "path": "id_rsa.pub", "mode": 0o644},
                    {"key": "ssh-publickey", "path": "authorized_keys", "mode": 0o644},
                ],
            },
        }
    ]
    assert launcher.pod_spec["volumes"][1]["configMap"] == {
        "name": "demo-mpi-hostfile",
        "items": [{"key": "hostfile", "path": "hostfile", "mode": 0o444}],
    }
    assert "volumes" not in aux.pod_spec


def test_only_the_launcher_should_get_variables() -> None:
    launcher, node = enforced(mpi(mpiImplementation="MPICH")).pod_sets
    assert env_of(launcher.containers[0]) == {"HYDRA_HOST_FILE": "/etc/mpi/hostfile", "HYDRA_LAUNCHER": "ssh"}
    assert env_of(node.containers[0]) == {}


GPUS = job("node", None, container(resources={"limits": {"nvidia.com/gpu": "4"}}))


@pytest.mark.parametrize(
    ("trainer", "policy", "slots"),
    [
        pytest.param({"numProcPerNode": 3}, {"numProcPerNode": 5}, 3, id="the TrainJob's number"),
        pytest.param({}, {"numProcPerNode": 5}, 5, id="the runtime's number"),
        pytest.param({}, {}, 4, id="as many as GPUs"),
        pytest.param({"numProcPerNode": 1}, {}, 1, id="the TrainJob's one is one"),
        pytest.param({"resourcesPerNode": {"requests": {"cpu": "2"}}}, {}, 4, id="by the merged resources"),
        pytest.param({"resourcesPerNode": {"limits": {"nvidia.com/gpu": "2"}}}, {}, 2, id="fewer GPUs"),
    ],
)
def test_processes_should_be_as_many_as_wanted_or_as_gpus(trainer: Any, policy: Any, slots: int) -> None:
    wanted = trainjob(trainer=trainer)
    value = mpi(GPUS, LAUNCHER, **policy)
    launcher = enforced(value, wanted).pod_sets[1]
    assert env_of(launcher.containers[0])["OMPI_MCA_orte_set_default_slots"] == str(slots)
    assert hostfile(value, wanted) == f"demo-node-0-0.demo slots={slots}\n"


def test_the_hostfile_should_follow_the_templates_order_and_every_replica() -> None:
    jobs = (job("node", None, replicas=2), LAUNCHER)
    assert hostfile(mpi(*jobs, runLauncherAsNode=True, template={"network": {"subdomain": "s"}}),
                    trainjob(trainer={"numNodes": 3})) == (
        "demo-node-0-0.s slots=1\ndemo-node-0-1.s slots=1\ndemo-node-1-0.s slots=1\ndemo-node-1-1.s slots=1\n"
        "demo-launcher-0-0.s slots=1\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("implementation", "line"),
    [
        ("OpenMPI", "demo-node-0-0.demo slots=2\n"),
        ("", "demo-node-0-0.demo slots=2\n"),
        ("OpenMPI5", "demo-node-0-0.demo slots=2\n"),
        ("Intel", "demo-node-0-0.demo:2\n"),
        ("MPICH", "demo-node-0-0.demo:2\n"),
    ],
)
def test_a_host_should_be_written_as_the_implementation_reads_it(implementation: str, line: str) -> None:
    assert hostfile(mpi(mpiImplementation=implementation, numProcPerNode=2)) == line


def test_keys_should_be_made_once_and_kept() -> None:
    secret, hosts = run_now(Mpi(dependencies()).build(enforced(mpi()), trainjob()))
    assert secret.write is Write.CREATE
    assert secret.body["type"] == "kubernetes.io/ssh-auth"
    assert secret.body["immutable"] is True
    assert set(secret.body["stringData"]) == {"ssh-privatekey", "ssh-publickey"}
    assert secret.body["metadata"]["ownerReferences"][0]["uid"] == UID
    assert hosts.write is Write.APPLY
    assert_valid(secret.body)
    assert_valid(hosts.body)
    again = run_now(Mpi(dependencies(secret.body)).build(enforced(mpi()), trainjob()))
    assert [component.body["kind"] for component in again] == ["ConfigMap"]


def test_keys_of_somebody_else_should_not_be_taken_for_ours() -> None:
    secret, _ = run_now(Mpi(dependencies(SECRET)).build(enforced(mpi()), trainjob()))
    assert (secret.name, secret.write) == ("demo-mpi-ssh-auth", Write.CREATE), "creating it will tell of the other one"


def test_other_runtimes_should_be_left_alone() -> None:
    wanted = trainjob(trainer={"env": [{"name": "OMPI_MCA_plm_rsh_args"}], "numProcPerNode": "auto"})
    info = enforced(runtime(LAUNCHER, NODE, mlPolicy={"torch": {}}), wanted)
    assert [pods.pod_spec.get("volumes") for pods in info.pod_sets] == [None, None]
    assert run_now(Mpi(dependencies()).build(info, wanted)) == []
    assert findings_of(Mpi(dependencies()), info, wanted).errors == []


def found(value: dict[str, Any], **trainer: Any) -> tuple[list[tuple[str, str]], list[str]]:
    wanted = trainjob(trainer=trainer)
    findings = findings_of(Mpi(dependencies()), info_of(value, wanted), wanted)
    return errors_of(findings), findings.warnings


@pytest.mark.parametrize(
    ("implementation", "name"),
    [
        ("OpenMPI", "OMPI_MCA_orte_default_hostfile"),
        ("OpenMPI", "OMPI_MCA_orte_keep_fqdn_hostnames"),
        ("OpenMPI", "OMPI_MCA_orte_set_default_slots"),
        ("OpenMPI", "OMPI_MCA_plm_rsh_args"),
        ("OpenMPI5", "PRTE_MCA_plm_ssh_args"),
        ("Intel", "I_MPI_PERHOST"),
        ("MPICH", "HYDRA_LAUNCHER"),
    ],
)
def test_reserved_variables_should_be_refused(implementation: str, name: str) -> None:
    errors, _ = found(mpi(mpiImplementation=implementation), env=[{"name": name, "value": "1"}])
    assert errors == [("INVALID", "spec.trainer.env")]


def test_variables_of_another_implementation_should_pass() -> None:
    assert found(mpi(mpiImplementation="MPICH"), env=[{"name": "OMPI_MCA_plm_rsh_args", "value": "1"}]) == ([], [])


def test_a_word_should_be_refused_as_a_number_of_processes() -> None:
    assert found(mpi(), numProcPerNode="auto")[0] == [("INVALID", "spec.trainer.numProcPerNode")]


@pytest.mark.parametrize(
    ("jobs", "nodes", "of_runtime", "refused"),
    [
        pytest.param([LAUNCHER], 2, None, True, id="no node"),
        pytest.param([NODE], 2, None, True, id="no launcher"),
        pytest.param([LAUNCHER], None, 2, True, id="the runtime's number"),
        pytest.param([LAUNCHER], 1, None, False, id="one node"),
        pytest.param([LAUNCHER, NODE], 2, None, False, id="both"),
    ],
)
def test_several_nodes_should_need_launcher_and_node(jobs: Any, nodes: Any, of_runtime: Any, refused: bool) -> None:
    value = mpi(*jobs, nodes=of_runtime, runLauncherAsNode=True)
    errors, _ = found(value, **({"numNodes": nodes} if nodes else {}))
    assert errors == [("INVALID", "spec.trainer.numNodes")] * refused


def test_a_single_node_that_makes_two_should_be_warned_of() -> None:
    assert found(mpi(runLauncherAsNode=True), numNodes=1)[1] != []
    assert found(mpi(runLauncherAsNode=True), numNodes=2)[1] == []
    assert found(mpi(), numNodes=1)[1] == []
    assert found(mpi(runLauncherAsNode=True))[1] != []
    three = job("node", None)
    three["template"]["spec"]["parallelism"] = 3
    assert found(mpi(LAUNCHER, three, runLauncherAsNode=True))[1] == []


@pytest.mark.parametrize(
    ("value", "trainer", "path"),
    [
        pytest.param(mpi(), {"numNodes": 2**31 - 1}, "spec.trainer.numNodes", id="nodes of the TrainJob"),
        pytest.param(mpi(nodes=2**31 - 1), {}, "spec.runtimeRef", id="nodes of the runtime"),
        pytest.param(mpi(LAUNCHER, job("node", None, replicas=2**31 - 1)), {}, "spec.runtimeRef", id="replicas"),
        pytest.param(
            mpi(job("launcher", None, replicas=2**31 - 1), NODE, runLauncherAsNode=True),
            {"numNodes": 2},
            "spec.trainer.numNodes",
            id="launchers",
        ),
    ],
)
def test_more_nodes_than_a_hostfile_holds_should_be_refused_without_writing_it(
    value: dict[str, Any], trainer: dict[str, Any], path: str
) -> None:
    assert found(value, **trainer)[0] == [("INVALID", path)]
    wanted = trainjob(trainer=trainer)
    with pytest.raises(ValueError, match="the hostfile would have"):
        run_now(Mpi(dependencies()).build(enforced(value, wanted), wanted))


def test_a_hostfile_may_be_long() -> None:
    assert found(mpi(), numNodes=30_000) == ([], [])
    assert hostfile(mpi(), trainjob(trainer={"numNodes": 30_000})).count("\n") == 30_000


def test_our_own_objects_should_be_watched() -> None:
    assert [(watch.resource.plural, watch.labelled) for watch in Mpi(dependencies()).watches()] == [
        ("configmaps", True),
        ("secrets", True),
    ]
