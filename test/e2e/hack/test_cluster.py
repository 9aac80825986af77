"""`hack/cluster` as a developer uses it: each test runs the program itself, with a state folder of its own."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from clusters.api import Api
from clusters.folder import Folder
from clusters.processes import running
from clusters.wait import wait_for

PROGRAM = Path(__file__).parents[3] / "hack" / "cluster"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path
    for folder in Folder.all():
        subprocess.run([PROGRAM, "down", "--name", folder.name], check=True, capture_output=True)


def hack_cluster(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


def processes_of(state: Path) -> list[psutil.Process]:
    """All processes that name the state folder, found without the help of the program under test."""
    found = []
    for process in psutil.process_iter():
        try:
            if any(str(state) in argument for argument in process.cmdline()):
                found.append(process)
        except psutil.Error:
            continue
    return found


def ports_of(folder: Folder) -> set[int]:
    processes = running(folder).values()
    connections = [each for process in processes for each in process.net_connections("tcp")]
    return {each.laddr.port for each in connections if each.status == psutil.CONN_LISTEN}


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def assert_nothing_is_left(state: Path) -> None:
    assert processes_of(state) == []
    assert list(state.iterdir()) == []


def test_two_clusters_should_live_side_by_side_and_leave_nothing(state: Path) -> None:
    for name in ("one", "two"):
        started = hack_cluster("up", "--name", name)
        assert started.returncode == 0, started.stderr
    one, two = Folder.named("one"), Folder.named("two")
    for folder in (one, two):
        api = Api(folder.kubeconfig("admin"))
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": folder.name}}
        api.create("/api/v1/namespaces/default/configmaps", item)
        names = [each["metadata"]["name"] for each in api.get("/api/v1/namespaces/default/configmaps")["items"]]
        # That of the authority comes when the controller manager has got round to it.
        assert [name for name in names if name != "kube-root-ca.crt"] == [folder.name]
        api.close()
    listed = hack_cluster("list").stdout.splitlines()
    assert [line.split("\t")[:2] for line in listed] == [["one", "ready"], ["two", "ready"]]
    assert hack_cluster("kubeconfig", "user", "--name", "two").stdout.strip() == str(two.kubeconfig("user"))

    again = hack_cluster("up", "--name", "one")
    assert again.returncode == 1
    assert again.stderr.startswith("error: the cluster 'one' exists: see `hack/cluster status --name one`, or")

    ports = ports_of(one)
    assert len(ports) >= 7
    assert hack_cluster("down", "--name", "one").returncode == 0
    assert all(is_free(port) for port in ports)
    assert hack_cluster("status", "--name", "two").returncode == 0
    assert hack_cluster("down", "--name", "two").returncode == 0
    assert_nothing_is_left(state)


def test_status_should_tell_which_component_is_down(state: Path) -> None:
    started = hack_cluster("up")
    assert started.returncode == 0, started.stderr
    assert hack_cluster("status").returncode == 0
    folder = Folder.named("default")
    running(folder)["etcd"].kill()
    assert wait_for(lambda: "etcd" not in running(folder), 5)
    told = hack_cluster("status")
    assert told.returncode == 1
    rows = {line.split()[0]: line.split()[1] for line in told.stdout.splitlines()[3:9] if line}
    assert rows["etcd"] == "down"
    assert "etcd is down; the last lines of its log:" in told.stdout

    audited = hack_cluster("logs", "audit", "--user", "admin", "--json").stdout.splitlines()
    assert {json.loads(line)["user"]["username"] for line in audited} == {"kubernetes-admin"}
    merged = hack_cluster("logs", "all").stdout.splitlines()
    assert {line.partition("|")[0].strip() for line in merged} >= {"etcd", "kube-apiserver", "jobset-controller"}
    assert "Starting workers" in hack_cluster("logs", "jobset-controller").stdout
    unknown = hack_cluster("logs", "kubelet")
    assert (
        unknown.returncode,
        unknown.stderr.startswith("error: the cluster 'default' has no component 'kubelet'"),
    ) == (1, True)


@pytest.mark.parametrize("sign", ["starting etcd", "starting kube-scheduler", "starting jobset-controller"])
def test_an_interrupted_start_should_leave_nothing(state: Path, sign: str) -> None:
    with subprocess.Popen([PROGRAM, "up"], stderr=subprocess.PIPE, text=True, start_new_session=True) as program:
        assert program.stderr is not None
        assert any(line.strip() == sign for line in program.stderr)
        # As a terminal does it: to every process in the foreground.
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(20) == 130
        assert program.stderr.read().splitlines()[-1] == "interrupted"
    assert_nothing_is_left(state)


def test_a_component_that_dies_at_start_should_be_told_with_its_last_words(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = state.parent / "assets" / "kube-apiserver"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho cannot go on\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(broken.parent))
    told = hack_cluster("up")
    assert told.returncode == 1
    assert told.stderr.splitlines()[-2:] == [
        "error: kube-apiserver ended with exit code 3 while the cluster started.",
        "kube-apiserver: cannot go on",
    ]
    assert_nothing_is_left(state)


def test_a_busy_port_should_be_one_sentence(state: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        told = hack_cluster("up", "--port", str(port))
    assert (told.returncode, told.stderr.splitlines()) == (
        1,
        [f"error: port {port} of 127.0.0.1 cannot be used (address already in use): choose another, or none at all."],
    )
    assert_nothing_is_left(state)


def test_the_original_should_turn_a_trainjob_into_a_jobset(state: Path) -> None:
    started = hack_cluster("up", "--with", "original", "--nodes", "2")
    assert started.returncode == 0, started.stderr
    group = "/apis/trainer.kubeflow.org/v1alpha1"
    container = {"name": "node", "image": "registry.example/none"}
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"metadata": {"labels": labels}, "spec": {"template": {"spec": {"containers": [container]}}}}
    runtime = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch"},
        "spec": {
            "mlPolicy": {"numNodes": 2, "torch": {"numProcPerNode": "auto"}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}},
        },
    }
    trainjob = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo"},
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 2}},
    }
    api = Api(Folder.named("default").kubeconfig("admin"))
    api.create(f"{group}/clustertrainingruntimes", runtime)
    api.create(f"{group}/namespaces/default/trainjobs", trainjob)

    def is_complete() -> bool:
        conditions = api.get(f"{group}/namespaces/default/trainjobs/demo").get("status", {}).get("conditions", [])
        return any(each["type"] == "Complete" and each["status"] == "True" for each in conditions)

    assert wait_for(is_complete, 60)
    api.close()
    assert hack_cluster("down").returncode == 0
    assert_nothing_is_left(state)
