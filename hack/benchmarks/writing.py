"""A client that writes as fast as the API server lets it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from ktrainer.aio.clock import SystemClock
from ktrainer.client.config.config import load_config
from ktrainer.client.connect import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
    from pathlib import Path

    from ktrainer.client.client import Client

AT_ONCE = 32


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[Client]:
    """A client without limits of its own."""
    connection = connect(
        load_config(kubeconfig),
        component="bench",
        clock=SystemClock(),
        registry=CollectorRegistry(),
        qps=1e6,
        burst=10**6,
    )
    try:
        yield connection.client
    finally:
        await connection.close()


async def for_each(items: Iterable[Any], work: Callable[[Any], Awaitable[object]], at_once: int = AT_ONCE) -> None:
    """Do some work for each of many items, several at a time."""
    pending = iter(items)

    async def take() -> None:
        for item in pending:
            await work(item)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once):
            tasks.create_task(take())
