"""What it costs to keep ten thousand TrainJobs in memory: measured in a process of its own, on a real API server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from benchmarks.figure import Figure
from benchmarks.population import create_trainjobs, install_crds, touch_trainjobs
from clusters import lifecycle
from clusters.folder import Folder
from clusters.plan import Options
from controlplane.build import ensure_assets
from controlplane.product import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OBJECTS = 10_000


def measure() -> list[Figure]:
    """Fill a cluster, and let a process read it."""
    with _cluster() as folder:
        kubeconfig = folder.kubeconfig("admin")
        install_crds(kubeconfig)
        _say(f"creating {OBJECTS:,} TrainJobs")
        asyncio.run(create_trainjobs(kubeconfig, OBJECTS))
        return _measure(kubeconfig)


def _measure(kubeconfig: Path) -> list[Figure]:
    command = [sys.executable, "-m", "benchmarks.reading", str(kubeconfig)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        _say("reading them")
        sync = _told_by(process)
        _say("changing each of them")
        asyncio.run(touch_trainjobs(kubeconfig, OBJECTS))
        process.stdin.write("changed\n")
        process.stdin.flush()
        events = _told_by(process)
        _say("idling")
        rest = _told_by(process)
    return [
        Figure(f"informer: sync of {sync['objects']:,} TrainJobs", sync["seconds"], "s", 3),
        Figure("informer: CPU of that sync", sync["cpu"], "s", 0.6),
        Figure("informer: memory of each", sync["bytes_each"] / 1024, "KiB", 8),
        Figure("informer: CPU of an event, socket to handler", events["cpu"] / events["updates"] * 1e6, "µs", 60),
        Figure("informer: CPU while nothing happens", rest["idle"] * 100, "%", 1),
        Figure("informer: longest full garbage collection", rest["pause"] * 1000, "ms", 20),
    ]


def _told_by(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit("the reading process ended early; see its error above")
    figures: dict[str, Any] = json.loads(line)
    return figures


@contextmanager
def _cluster() -> Iterator[Folder]:
    folder = Folder.named(f"bench-{os.getpid()}")
    assets = ensure_assets(products=[product for product in PRODUCTS if product.name != "original"])
    lifecycle.up(folder, assets, Options(), _say)
    try:
        yield folder
    finally:
        lifecycle.down(folder)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
