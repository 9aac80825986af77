import subprocess
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from ktrainer.plugins.flux.scripts import Cluster, entrypoint_of, init_script_of

CLUSTER = Cluster(
    hosts="demo-node-0",
    domain="demo.team-a.svc",
    nodes=2,
    processes=4,
    gpus=0,
    network_device="eth0",
    queue_policy="fcfs",
)


@pytest.mark.parametrize("script", [init_script_of(CLUSTER), entrypoint_of(CLUSTER)])
def test_a_script_should_be_complete_and_well_formed(script: str) -> None:
    assert script.startswith("#!/bin/bash\n")
    assert "@" not in script.replace("[@]", "")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def broker_of(cluster: Cluster) -> dict[str, object]:
    text = init_script_of(cluster).split("<<'BROKER'\n")[1].split("\nBROKER\n")[0]
    return tomllib.loads(text)


def test_the_brokers_should_find_each_other() -> None:
    broker = broker_of(CLUSTER)
    assert broker["bootstrap"] == {
        "curve_cert": "/mnt/flux/config/etc/curve/curve.cert",
        "default_port": 8050,
        "default_bind": "tcp://eth0:%p",
        "default_connect": "tcp://%h.demo.team-a.svc:%p",
        "hosts": [{"host": "demo-node-0-[0-1]"}],
    }
    assert broker["sched-fluxion-qmanager"] == {"queue-policy": "fcfs"}
    assert "'demo-node-0-[0-1]' > " in init_script_of(CLUSTER)


def test_a_single_host_should_not_be_a_range() -> None:
    assert broker_of(replace(CLUSTER, nodes=1))["bootstrap"]["hosts"] == [{"host": "demo-node-0-[0]"}]  # type: ignore[index]


def test_settings_should_not_break_out_of_their_place() -> None:
    broker = broker_of(replace(CLUSTER, queue_policy='x"\ny = "z'))
    assert broker["sched-fluxion-qmanager"] == {"queue-policy": 'x"\ny = "z'}


@pytest.mark.parametrize(
    ("cluster", "resources", "tasks"),
    [
        (CLUSTER, "--cores=0-3 ", "-N 2 -n 8 "),
        (replace(CLUSTER, processes=1), "--cores=0 ", "-N 2 -n 2 "),
        (replace(CLUSTER, gpus=4), "--cores=0-3 --gpus=0-3 ", "-N 2 -n 8 -g 1 "),
        (replace(CLUSTER, processes=1, gpus=4), "--cores=0 --gpus=0-3 ", "-N 2 -n 2 -g 4 "),
        (replace(CLUSTER, gpus=1), "--cores=0-3 --gpus=0 ", "-N 2 -n 8 -g 1 "),
    ],
)
def test_tasks_should_fit_the_nodes(cluster: Cluster, resources: str, tasks: str) -> None:
    script = entrypoint_of(cluster)
    assert f'" {resources}> ' in script
    assert f"flux run {tasks}" in script


def run_entrypoint(tmp_path: Path, hostname: str, program: str, flux_fails: int = 0) -> str:
    """Run the script with everything around it replaced by stubs; return what Flux was asked to do."""
    log, bin_folder = tmp_path / "log", tmp_path / "bin"
    bin_folder.mkdir()
    view = tmp_path / "flux" / "view" / "lib" / "python3.11" / "site-packages"
    view.mkdir(parents=True)
    for folder in ("config/etc/flux/system", "config/etc/curve", "software"):
        (tmp_path / "flux" / folder).mkdir(parents=True)
    (tmp_path / "flux/config/etc/flux/system/hostlist").write_text("demo-node-0-[0-1]\n")
    (tmp_path / "curve").mkdir()
    (tmp_path / "curve/curve.cert").write_text("certificate")
    stubs = {
        "hostname": f"echo {hostname}",
        "sleep": f"echo sleep >> {log}",
        "flux": f'for word in "$@"; do printf "<%s>" "$word"; done >> {log}; echo >> {log}\n'
        f'[ "$1" != start ] || [ "$(grep -c "^<start>" {log})" -gt {flux_fails} ]',
    }
    for name, body in stubs.items():
        (bin_folder / name).write_text(f"#!/bin/bash\n{body}\n")
        (bin_folder / name).chmod(0o755)
    script = entrypoint_of(CLUSTER)
    script = script.replace("/mnt/flux", f"{tmp_path}/flux").replace(" /curve/", f" {tmp_path}/curve/")
    script = script.replace("/opt/software", f"{tmp_path}/opt/software")
    environment = {"PATH": f"{bin_folder}:/usr/bin:/bin"}
    subprocess.run(["bash", "-c", script, "entrypoint.sh", program], env=environment, check=True, capture_output=True)
    certificate = tmp_path / "flux/config/etc/curve/curve.cert"
    assert certificate.stat().st_mode & 0o777 == 0o400
    assert list((tmp_path / "opt/software").iterdir()) == []
    return log.read_text()


def test_the_leader_should_run_the_program_word_by_word(tmp_path: Path) -> None:
    asked = run_entrypoint(tmp_path, "demo-node-0-0", "python train.py --glob=*")
    assert "<R><encode><--hosts=demo-node-0-[0-1]><--cores=0-3>\n" in asked
    assert asked.endswith("<flux><run><-N><2><-n><8><python><train.py><--glob=*>\n")


def test_without_a_program_the_leader_should_only_wait_for_work(tmp_path: Path) -> None:
    asked = run_entrypoint(tmp_path, "demo-node-0-0", "")
    assert asked.splitlines()[-1].startswith("<broker><--config-path>")


def test_a_follower_should_try_until_the_leader_is_there(tmp_path: Path) -> None:
    asked = run_entrypoint(tmp_path, "demo-node-0-1", "python train.py", flux_fails=2)
    assert asked.count("<start><-o><--config>") == 3
    assert asked.count("sleep") == 2
    assert "train.py" not in asked
