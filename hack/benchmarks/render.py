"""The way from raw bytes of a TrainJob and its runtime to bytes that are ready to be applied; and what imports cost."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks.command import build_parser, run
from benchmarks.figure import Figure
from ktrainer.api.decoding import decode
from ktrainer.api.labels import ANCESTOR
from ktrainer.api.trainjob import TrainJob
from ktrainer.app.documents import run_now
from ktrainer.app.keys import show_curve_keys, show_ssh_keys
from ktrainer.app.training import build_training
from ktrainer.framework.dependencies import Dependencies

if TYPE_CHECKING:
    from collections.abc import Callable

    from ktrainer.kube.identity import Resource
    from ktrainer.kube.jsonvalue import JsonObject

API_VERSION = "trainer.kubeflow.org/v1alpha1"
ROUNDS = 7


class RuntimeBytes:
    """A reader for which there is one runtime, as bytes, and nothing else."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    async def fetch(self, resource: Resource, namespace: str, name: str, *, live: bool = False) -> JsonObject | None:
        """The runtime, parsed anew."""
        value: JsonObject | None = orjson.loads(self._raw) if resource.kind == "ClusterTrainingRuntime" else None
        return value


def build_runtime(policy: JsonObject, *names: str) -> bytes:
    """A runtime with a job of each name, the first of which is the trainer's."""
    resources = {"limits": {"nvidia.com/gpu": 8}, "requests": {"cpu": "16", "memory": "64Gi"}}
    pods = {"spec": {"containers": [{"name": "node", "image": "img", "resources": resources}]}}
    jobs: list[Any] = [{"name": name, "replicas": 1, "template": {"spec": {"template": pods}}} for name in names]
    jobs[0] = {**jobs[0], "template": {"metadata": {"labels": {ANCESTOR: "trainer"}}, "spec": {"template": pods}}}
    spec = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": jobs}}}
    value = {"apiVersion": API_VERSION, "kind": "ClusterTrainingRuntime", "metadata": {"name": "rt"}, "spec": spec}
    return orjson.dumps(value)


def build_job(nodes: int) -> bytes:
    """A TrainJob with so many nodes."""
    metadata = {"name": "demo", "namespace": "team-a", "uid": "11111111-2222-3333-4444-555555555555"}
    env = [{"name": "EPOCHS", "value": "3"}]
    spec = {"runtimeRef": {"name": "rt"}, "trainer": {"numNodes": nodes, "command": ["torchrun", "t.py"], "env": env}}
    return orjson.dumps({"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": metadata, "spec": spec})


def from_bytes_to_bytes(raw_runtime: bytes, raw_job: bytes) -> Callable[[], object]:
    """The whole way, snapshot included, with nothing remembered."""
    reader = RuntimeBytes(raw_runtime)
    runtimes = build_training(Dependencies(reader=reader, make_ssh_keys=show_ssh_keys, make_curve_keys=show_curve_keys))

    def work() -> object:
        job = decode(TrainJob, orjson.loads(raw_job))
        if not isinstance(job, TrainJob):
            raise TypeError(job)
        plan = run_now(runtimes.of(job.spec.runtime_ref).plan(job))
        return [orjson.dumps(component.body) for component in plan.components]

    return work


def seconds_of(work: Callable[[], object], times: int) -> float:
    """The CPU time of one call, by the best of some rounds."""
    work()
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(times):
            work()
        best = min(best, (time.process_time() - start) / times)
    return best


def import_seconds(command: str) -> float:
    """The CPU time of a Python process that imports a command as the program does, by the best of some.

    Its bytecode is there, as where pip has installed it, and whatever the environment says about writing any. What the
    tools of developers bring along, and a library of ours imports where it is there, is not, as in the image.
    """
    best = float("inf")
    code = f"import sys; sys.modules['rich'] = None; from ktrainer.cli.main import load; load({command!r})"
    with tempfile.TemporaryDirectory() as folder:
        env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        env["PYTHONPYCACHEPREFIX"] = folder
        for is_first in (True, *[False] * ROUNDS):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], check=True, env=env)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            best = best if is_first else min(best, used)
    return best


def measure() -> list[Figure]:
    """Measure everything; takes half a minute."""
    torch = from_bytes_to_bytes(build_runtime({"torch": {}}, "node"), build_job(2))
    mpi = from_bytes_to_bytes(build_runtime({"mpi": {}}, "launcher", "node"), build_job(10_000))
    return [
        Figure("build a torch TrainJob of 2 nodes, bytes to bytes", seconds_of(torch, 300) * 1e6, "µs", 300),
        Figure("build an MPI TrainJob of 10,000 nodes", seconds_of(mpi, 5) * 1e3, "ms", 25),
        Figure("import ktrainer render --offline", import_seconds("render") * 1e3, "ms", 250),
        Figure("import ktrainer manager", import_seconds("manager") * 1e3, "ms", 500),
    ]


def main() -> None:
    """Measure everything."""
    build_parser("render", __doc__).parse_args()
    run(measure)


if __name__ == "__main__":
    main()
