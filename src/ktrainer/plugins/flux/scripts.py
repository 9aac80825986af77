"""The two scripts of a Flux job: `init.sh` for the init container and `entrypoint.sh` for the training container.

They are kept as files beside this module, with names between @ signs where a job's own values go.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Cluster:
    """What the scripts have to know about a job."""

    hosts: str
    """The host names without their number, such as demo-node-0."""
    domain: str
    """What follows a host name to make it known in the whole cluster."""
    nodes: int
    processes: int
    """Processes on each node."""
    gpus: int
    """GPUs of each node."""
    network_device: str
    queue_policy: str


def init_script_of(cluster: Cluster) -> str:
    """What the init container runs."""
    hosts = f"{cluster.hosts}-[{_range(cluster.nodes)}]"
    return _filled(
        "init.sh",
        HOSTS=hosts,
        HOSTS_TOML=_toml(hosts),
        BIND=_toml(f"tcp://{cluster.network_device}:%p"),
        CONNECT=_toml(f"tcp://%h.{cluster.domain}:%p"),
        QUEUE_POLICY=_toml(cluster.queue_policy),
    )


def entrypoint_of(cluster: Cluster) -> str:
    """What the training container runs."""
    resources = f"--cores={_range(cluster.processes)}"
    tasks = f"-N {cluster.nodes} -n {cluster.nodes * cluster.processes}"
    if cluster.gpus:
        resources += f" --gpus={_range(cluster.gpus)}"
        # Flux counts GPUs for each task; asking for all of them in each would ask for more than a node has.
        tasks += f" -g {max(1, cluster.gpus // cluster.processes)}"
    return _filled("entrypoint.sh", LEADER=f"{cluster.hosts}-0", RESOURCES=resources, TASKS=tasks)


def _filled(script: str, **values: str) -> str:
    text = _read(script)
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


@cache
def _read(script: str) -> str:
    return Path(__file__).with_name(script).read_text(encoding="utf-8")


def _range(count: int) -> str:
    return "0" if count == 1 else f"0-{count - 1}"


def _toml(text: str) -> str:
    # A basic string of TOML is spelled like one of JSON.
    return json.dumps(text)
