"""`hack/run` as `make run` calls it: each test runs the program itself, with a state folder of its own."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from clusters.api import Api
from clusters.folder import Folder
from demo.jobs import read_examples

PROGRAM = Path(__file__).parents[3] / "hack" / "run"
CLUSTER = PROGRAM.with_name("cluster")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path
    for folder in Folder.all():
        subprocess.run([CLUSTER, "down", "--name", folder.name], check=True, capture_output=True)


def assert_nothing_is_left(state: Path) -> None:
    left = [
        process for process in psutil.process_iter(["cmdline"]) if str(state) in " ".join(process.info["cmdline"] or [])
    ]
    assert left == []
    assert list(state.iterdir()) == []


@pytest.mark.timeout(400)
def test_all_examples_should_be_shown_to_their_end_and_stay_to_be_looked_at(state: Path) -> None:
    ran = subprocess.run([PROGRAM], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "\x1b" not in ran.stdout
    lines = [line.split() for line in ran.stdout.splitlines()]
    names = [example["metadata"]["name"] for example in read_examples()]
    for name in names:
        states = [words[3] for words in lines if words[1:3] == ["s", name]]
        assert states[-1] == "Complete"
        assert "Pending" in states or "Running" in states
    assert f"{len(names)} of {len(names)} TrainJobs are complete" in ran.stdout

    kubeconfig = Folder.named("run").kubeconfig("admin")
    assert f"export KUBECONFIG={kubeconfig}" in ran.stdout
    api = Api(kubeconfig)
    trainjobs = api.get("/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs")["items"]
    assert sorted(each["metadata"]["name"] for each in trainjobs) == sorted(names)
    api.close()
    status = subprocess.run([CLUSTER, "status", "--name", "run"], capture_output=True, text=True, check=False)
    assert (status.returncode, "ktrainer-manager" in status.stdout) == (0, True)
    assert subprocess.run([CLUSTER, "down", "--name", "run"], capture_output=True, check=False).returncode == 0
    assert_nothing_is_left(state)


@pytest.mark.timeout(200)
@pytest.mark.parametrize("sign", ["starting kube-scheduler", "kubectl apply", "starting ktrainer", "Pending"])
def test_an_interrupted_show_should_leave_nothing(state: Path, sign: str) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([PROGRAM], stdout=pipe, stderr=pipe, text=True, start_new_session=True) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        assert any(sign in line for line in program.stdout)
        # As a terminal does it: to every process in the foreground.
        os.killpg(program.pid, signal.SIGINT)
        assert program.wait(30) == 130
        assert program.stderr.read().splitlines()[-1] == "interrupted"
    assert_nothing_is_left(state)
