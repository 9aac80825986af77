"""Many ConfigMaps, quickly."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import orjson
from prometheus_client import CollectorRegistry

from ktrainer.aio.clock import SystemClock
from ktrainer.client.config.config import load_config
from ktrainer.client.connect import connect
from support.observer import CONFIGMAPS, configmap

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from ktrainer.client.client import Client

_AT_ONCE = 16


async def populate(kubeconfig: Path, namespace: str, names: Iterable[str], payload: str = "", parts: int = 1) -> None:
    """Create ConfigMaps that the observer sees, sixteen at a time; their label counts them off, as 0, 1, … `parts`."""
    config = load_config(kubeconfig, None)
    registry = CollectorRegistry()
    connection = connect(config, component="population", clock=SystemClock(), registry=registry, qps=1e6, burst=10**6)
    bodies = (configmap(name, str(number % parts), payload=payload) for number, name in enumerate(names))
    pending = iter([orjson.dumps(body) for body in bodies])
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(_AT_ONCE):
                tasks.create_task(_create(connection.client, namespace, pending))
    finally:
        await connection.close()


async def _create(client: Client, namespace: str, pending: Iterable[bytes]) -> None:
    for body in pending:
        await client.create(CONFIGMAPS, namespace, body)
