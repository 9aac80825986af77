"""What it costs to keep ten thousand TrainJobs in memory: measured in a process of its own, on a real API server."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

import psutil

from benchmarks.figure import Figure
from benchmarks.population import create_trainjobs, install_crds, touch_trainjobs
from benchmarks.progress import Progress, say
from clusters import lifecycle
from clusters.folder import Folder
from clusters.plan import Options
from controlplane.build import ensure_assets
from controlplane.problem import Problem
from controlplane.product import PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OBJECTS = 10_000
BURST = 250
"""Events that fit into the buffers of a connection while nobody reads."""
BREATH_SECONDS = 0.3
"""What the reader gets to read them."""
SYNCS = 5
"""How often the first state is read, each time by a new process: the API server and its neighbours are uneven."""


def measure() -> list[Figure]:
    """Fill a cluster, and let a process read it."""
    with _cluster() as folder:
        kubeconfig = folder.kubeconfig("admin")
        install_crds(kubeconfig)
        say(f"creating {OBJECTS:,} TrainJobs")
        asyncio.run(create_trainjobs(kubeconfig, range(OBJECTS)))
        return _measure(kubeconfig)


def _measure(kubeconfig: Path) -> list[Figure]:
    say(f"reading them, {SYNCS} times")
    syncs = []
    for _ in range(SYNCS - 1):
        with _reader(kubeconfig) as process:
            syncs.append(_told_by(process))
    with _reader(kubeconfig) as process:
        assert process.stdin is not None
        sync = _told_by(process)
        syncs.append(sync)
        say("changing each of them")
        asyncio.run(_touch_in_bursts(kubeconfig, psutil.Process(process.pid)))
        process.stdin.write("changed\n")
        process.stdin.flush()
        events = _told_by(process)
        say("idling")
        rest = _told_by(process)
    return [
        Figure(f"informer: sync of {sync['objects']:,} TrainJobs", median(each["seconds"] for each in syncs), "s", 3),
        Figure("informer: CPU of that sync", median(each["cpu"] for each in syncs), "s", 0.6),
        Figure("informer: memory of each", sync["bytes_each"] / 1024, "KiB", 8),
        Figure("informer: CPU of an event, socket to handler", events["cpu"] / events["updates"] * 1e6, "µs", 60),
        Figure("informer: CPU while nothing happens", rest["idle"] * 100, "%", 1),
        Figure("informer: longest full garbage collection", rest["pause"] * 1000, "ms", 20),
    ]


@contextmanager
def _reader(kubeconfig: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "benchmarks.reading", str(kubeconfig)]
    # In a session of its own: a Ctrl-C is for us, who end it then.
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


async def _touch_in_bursts(kubeconfig: Path, reader: psutil.Process) -> None:
    """Change every object while the reader stands still, so that it meets events in plenty and not one by one.

    What an event costs is then what its bytes cost, and not what waking up for it does.
    """
    progress = Progress(OBJECTS)
    for start in range(0, OBJECTS, BURST):
        progress.reached(start)
        reader.suspend()
        try:
            await touch_trainjobs(kubeconfig, range(start, start + BURST))
        finally:
            reader.resume()
        await asyncio.sleep(BREATH_SECONDS)


def _told_by(process: subprocess.Popen[str]) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise Problem("the reading process ended early; see its error above")
    figures: dict[str, Any] = json.loads(line)
    return figures


@contextmanager
def _cluster() -> Iterator[Folder]:
    folder = Folder.named(f"bench-{os.getpid()}")
    assets = ensure_assets(products=[product for product in PRODUCTS if product.name != "original"])
    lifecycle.up(folder, assets, Options(), say)
    try:
        yield folder
    finally:
        lifecycle.down(folder)
