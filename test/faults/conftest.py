"""Fault scenarios on a real control plane: each breaks something on purpose, and measures what the kit makes of it.

After each scenario nothing may be left: no task, no socket, no file descriptor; and no callback of the event loop may
have computed for long.
"""

import asyncio
import gc
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from clusters.api import Api
from clusters.folder import Folder
from ktrainer.app.process import GC_THRESHOLDS
from support.components import Components
from support.faultproxy.proxy import FaultProxy
from support.figures import Figures, scaled
from support.loopcpu import measured_callbacks
from support.observer import observing
from support.population import populate

MOST_CALLBACK_SECONDS = 0.020
DESCRIPTOR_SLACK = 2
CROWD = scaled(2_000, 10_000)
CROWD_PARTS = 6


@pytest.fixture
def proxy(cluster: Folder, tmp_path: Path) -> Iterator[FaultProxy]:
    """A misbehaving way to the API server, as its administrator."""
    with FaultProxy(cluster.kubeconfig("admin"), tmp_path) as running:
        yield running


@pytest.fixture
def components(cluster: Folder) -> Components:
    """The processes of the control plane."""
    return Components(cluster)


@pytest.fixture
def crowd_size() -> int:
    """How many ConfigMaps are in `crowd`."""
    return CROWD


@pytest.fixture(scope="session")
def crowd(cluster: Folder) -> Iterator[str]:
    """A namespace with many ConfigMaps, named m-…, labelled 0 to 5 in turn. Whoever adds others removes them again."""
    name = f"crowd-{uuid.uuid4().hex[:8]}"
    with closing(Api(cluster.kubeconfig("admin"))) as admin:
        admin.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        names = (f"m-{number:05}" for number in range(CROWD))
        asyncio.run(_settled(populate(cluster.kubeconfig("admin"), name, names, parts=CROWD_PARTS)))
        # Scenarios may restart the server.
        admin.close()
        yield name
        admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture(scope="session")
def _warm(cluster: Folder) -> None:
    """Make the cluster, and import what is imported when it is first needed: neither counts against a scenario."""

    async def connect_once() -> None:
        async with observing(cluster.kubeconfig("admin"), "default"):
            pass

    asyncio.run(_settled(connect_once()))
    # As every program of ours does once it has started: the collector need not look at what stays anyway, nor often.
    gc.set_threshold(*GC_THRESHOLDS)
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
async def _nothing_is_left(_warm: None, figures: Figures) -> AsyncIterator[None]:
    process = psutil.Process()
    before = process.num_fds()
    # What earlier scenarios have left to the test runner is not this one's to be looked through for garbage.
    gc.collect()
    gc.freeze()
    with measured_callbacks(MOST_CALLBACK_SECONDS) as times:
        yield
    current = asyncio.current_task()
    left = [task for task in asyncio.all_tasks() if task is not current and not task.done()]
    assert not left, f"tasks are left: {[task.get_name() for task in left]}"
    gc.collect()
    await _closed(process, before + DESCRIPTOR_SLACK)
    assert process.num_fds() <= before + DESCRIPTOR_SLACK, f"file descriptors are left: {_descriptors()}"
    assert not times.slow, f"callbacks computed for too long: {times.slow}"
    figures.at_most(
        "longest callback of the event loop", times.longest_seconds * 1000, MOST_CALLBACK_SECONDS * 1000, "ms"
    )


async def _settled(work: Awaitable[None]) -> None:
    """Do some work, and see its sockets off before the loop ends."""
    process = psutil.Process()
    before = process.num_fds()
    await work
    await _closed(process, before)


async def _closed(process: psutil.Process, descriptors: int) -> None:
    """Wait for sockets that were just closed: they go away with the next turns of the loop."""
    for _ in range(100):
        if process.num_fds() <= descriptors:
            break
        await asyncio.sleep(0.02)


def _descriptors() -> list[str]:
    return sorted(os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink())
