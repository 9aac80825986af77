"""Crashes of the example controller: it is killed at any of its writes, those about its certificates included."""

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import yaml

from clusters.api import Api, Object, Refused
from clusters.ports import free_ports
from support.copies import eventually
from support.faultproxy.http1 import Request
from support.faultproxy.proxy import FaultProxy
from support.faultproxy.rules import Strike
from support.figures import Figures
from support.realcluster import new_namespace

EXAMPLE = Path(__file__).parents[2] / "examples" / "configmap_copier.py"
ASKS = "copier.example/to"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/configmap-copier"
SECRET = "/api/v1/namespaces/default/secrets/configmap-copier-certificates"


class Example:
    """The example as a process, on a port of its own and without an election."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        (self.port,) = free_ports(1)
        options = {"KUBECONFIG": str(kubeconfig), "COPIER_PORT": str(self.port), "COPIER_LEASE": ""}
        self._environment = {**os.environ, **options}
        self._log = folder / f"example-{self.port}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        with self._log.open("ab") as log:
            command = [sys.executable, "-P", str(EXAMPLE)]
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@asynccontextmanager
async def starting(
    admin: Api, proxy: FaultProxy, folder: Path, is_hit: Callable[[Request], bool], is_after: bool
) -> AsyncIterator[Example]:
    """The example on a cluster that has never seen it; it is killed at the write that is hit."""
    example = Example(proxy.kubeconfig, folder)
    proxy.rules = [Strike(is_hit, times=1, action=example.kill, is_after=is_after)]
    webhooks = yaml.safe_load(EXAMPLE.with_suffix(".yaml").read_text().replace("9443", str(example.port)))
    for path in (SECRET, WEBHOOKS):
        if admin.exists(path):
            admin.delete(path)
    admin.create(WEBHOOKS.rpartition("/")[0], webhooks)
    try:
        await asyncio.to_thread(example.start)
        yield example
    finally:
        proxy.rules = []
        await asyncio.to_thread(example.kill)
        admin.delete(WEBHOOKS)


def source(colour: str) -> Object:
    metadata = {"name": "one", "annotations": {ASKS: "two"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": colour}}


def is_done(admin: Api, path: str) -> bool:
    """Whether the copy is there and the webhook, which the API server trusts, refuses what it must."""
    try:
        admin.merge(f"{path}/one?dryRun=All", {"metadata": {"annotations": {ASKS: "one"}}})
    except Refused as refusal:
        return "it would copy itself" in str(refusal) and admin.exists(f"{path}/two")
    return False


async def test_T01_the_example_should_survive_a_crash_at_any_write(
    proxy: FaultProxy, admin: Api, tmp_path: Path, figures: Figures
) -> None:
    # Its writes for one source: the Secret with its certificates, the caBundle, and the copy.
    points = [(number, is_after) for number in range(3) for is_after in (False, True)]
    slowest = 0.0
    for number, is_after in points:
        with new_namespace(admin) as namespace:
            path = f"/api/v1/namespaces/{namespace}/configmaps"
            await asyncio.to_thread(admin.create, path, source("blue"))
            async with starting(admin, proxy, tmp_path, nth_write(number), is_after) as example:
                await eventually(lambda: not example.is_running, 60, f"killed at write {number}")
                await asyncio.to_thread(example.start)
                began = time.monotonic()
                await eventually(lambda: is_done(admin, path), 60, "all is done after the restart")  # noqa: B023
                slowest = max(slowest, time.monotonic() - began)
    figures.at_least("crash points of the example", len(points), 6)
    figures.at_most("all done after a restart of the example", slowest, 10, "s")


def nth_write(number: int) -> Callable[[Request], bool]:
    """Match one write, counted from 0; to be asked once for each request."""
    seen: list[str] = []

    def matches(request: Request) -> bool:
        if not request.is_write or "/events" in request.path:
            return False
        seen.append(request.path)
        return len(seen) == number + 1

    return matches
