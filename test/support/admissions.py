"""A steady stream of TrainJobs that an API server asks the webhook about, and what becomes of each."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clusters.api import Api, Refused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from clusters.api import Object

THREADS = 4


@dataclass
class Admissions:
    """What became of them."""

    seconds: list[float] = field(default_factory=list)
    """How long the API server took for each that it accepted."""
    failures: list[str] = field(default_factory=list)

    def take(self) -> list[float]:
        """How long each took since the last time that this was asked."""
        taken, self.seconds = self.seconds, []
        return taken


@asynccontextmanager
async def admitting(kubeconfig: Path, path: str, value: Object, per_second: float) -> AsyncIterator[Admissions]:
    """Create an object over and over as a dry run, in threads: it is judged each time, and never stored."""
    admissions, ended = Admissions(), threading.Event()
    tasks = [
        asyncio.create_task(
            asyncio.to_thread(_work, kubeconfig, f"{path}?dryRun=All", value, THREADS / per_second, admissions, ended)
        )
        for _ in range(THREADS)
    ]
    try:
        yield admissions
    finally:
        ended.set()
        await asyncio.gather(*tasks)


def _work(
    kubeconfig: Path, path: str, value: Object, interval: float, admissions: Admissions, ended: threading.Event
) -> None:
    with closing(Api(kubeconfig)) as api:
        next_at = time.monotonic()
        while not ended.wait(max(0.0, next_at - time.monotonic())):
            next_at = max(next_at + interval, time.monotonic() - 1)
            began = time.monotonic()
            try:
                api.create(path, value)
                admissions.seconds.append(time.monotonic() - began)
            except (OSError, Refused) as error:
                admissions.failures.append(f"{time.strftime('%H:%M:%S')} {error}")
