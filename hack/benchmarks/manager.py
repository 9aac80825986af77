"""The manager with its shipped configuration and limits, on a real API server; takes some minutes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import orjson

from benchmarks import admission, storm
from benchmarks.bench import cpu_seconds, deploy, quiet_cluster, resident_mebibytes, restart, wait_working
from benchmarks.command import build_parser, run
from benchmarks.figure import Figure
from benchmarks.progress import counted, say
from benchmarks.writing import connected, for_each
from deployment.overlay import CONFIG
from ktrainer.api.configuration import ClientConnection
from ktrainer.api.resources import SECRETS

if TYPE_CHECKING:
    from pathlib import Path

    from deployment.deployment import Deployment

STORM = 500
CROWD = 5_000
FOREIGN = 20_000
SETTLE_SECONDS = 5.0
"""What a manager gets after its start until its memory is looked at."""


def measure() -> list[Figure]:
    """Measure storm, memory and start on one cluster."""
    with quiet_cluster() as (folder, kubectl):
        deployment = deploy(folder, kubectl)
        kubeconfig = folder.kubeconfig("admin")
        asyncio.run(storm.storm_seconds(kubeconfig, 10, "first"))
        say(f"a storm of {STORM} TrainJobs")
        cpu = cpu_seconds(folder)
        seconds = asyncio.run(storm.storm_seconds(kubeconfig, STORM, "storm"))
        cpu = cpu_seconds(folder) - cpu
        say("the same writes by a bare client")
        bare = asyncio.run(storm.bare_seconds(kubeconfig, STORM, "storm-0"))
        say(f"storm {seconds:.1f} s with {cpu:.1f} s of the manager's CPU time, bare client {bare:.1f} s")
        say(f"the default limits allow no less than {_least_seconds(STORM):.1f} s")
        return [
            Figure(f"storm of {STORM} TrainJobs, as a multiple of the bare writes", seconds / bare, "times", 2.5),
            *_measure_crowd(deployment, kubeconfig),
        ]


def _least_seconds(count: int) -> float:
    """How long one write of each kind for each TrainJob takes whoever keeps to the default limits."""
    limits = ClientConnection()
    return (count - limits.burst) / limits.qps


def _measure_crowd(deployment: Deployment, kubeconfig: Path) -> list[Figure]:
    missing = CROWD - STORM
    say(f"{missing:,} more TrainJobs")
    asyncio.run(storm.storm_seconds(kubeconfig, missing, "crowd"))
    memory, _ = _start(deployment)
    say(f"{FOREIGN:,} foreign Secrets")
    asyncio.run(_create_secrets(kubeconfig))
    with_secrets, seconds = _start(deployment)
    return [
        Figure(f"memory with {CROWD:,} TrainJobs and JobSets", memory, "MiB", 140),
        Figure(f"memory that {FOREIGN:,} foreign Secrets add", with_secrets - memory, "MiB", 2),
        Figure("start to work with all of them", seconds, "s", 4),
    ]


def _start(deployment: Deployment) -> tuple[float, float]:
    """Start the manager anew; return its memory when it has settled, and how long it took to begin to work."""
    restart(deployment)
    began = time.perf_counter()
    wait_working(deployment)
    seconds = time.perf_counter() - began
    time.sleep(SETTLE_SECONDS)  # noqa: TID251 - nothing tells when all of the first pass is over
    return resident_mebibytes(deployment), seconds


async def _create_secrets(kubeconfig: Path) -> None:
    async with connected(kubeconfig) as client:

        async def create(number: int) -> None:
            body = {"metadata": {"name": f"foreign-{number}"}, "stringData": {"token": "x" * 2_000}}
            await client.create(SECRETS, storm.NAMESPACE, orjson.dumps({"apiVersion": "v1", "kind": "Secret", **body}))

        await for_each(counted(range(FOREIGN)), create)


def measure_original() -> None:
    """Let the original meet the storm, and tell how it fared."""
    with quiet_cluster(with_original=True) as (folder, kubectl):
        kubectl("apply", "--server-side", "-k", str(CONFIG / "runtimes"))
        kubeconfig = folder.kubeconfig("admin")
        asyncio.run(storm.storm_seconds(kubeconfig, 10, "first"))
        say(f"a storm of {STORM} TrainJobs, for the original")
        seconds = asyncio.run(storm.storm_seconds(kubeconfig, STORM, "storm"))
        bare = asyncio.run(storm.bare_seconds(kubeconfig, STORM, "storm-0"))
        print(f"the original: storm {seconds:.1f} s, bare client {bare:.1f} s: {seconds / bare:.2f} times")


def main() -> None:
    """Measure everything, what an admission costs included."""
    parser = build_parser("manager", __doc__)
    parser.add_argument("--beside-original", action="store_true", help="let the Go original meet the same storm first")
    beside_original = parser.parse_args().beside_original

    def measure_all() -> list[Figure]:
        if beside_original:
            measure_original()
        return [*measure(), *admission.measure()]

    run(measure_all)


if __name__ == "__main__":
    main()
