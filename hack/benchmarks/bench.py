"""A cluster to measure a manager on: JobSets are only kept there, since nobody plays with them but the benchmark."""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from benchmarks.progress import say
from clusters import lifecycle, processes
from clusters.api import Api
from clusters.folder import Folder
from clusters.plan import Options
from clusters.wait import wait_for
from controlplane.build import ensure_assets
from controlplane.problem import Problem
from controlplane.product import PRODUCTS
from deployment.deployment import Deployment
from deployment.kubectl import Kubectl

if TYPE_CHECKING:
    from collections.abc import Iterator

_REGISTRATIONS = "/apis/admissionregistration.k8s.io/v1"
_MANAGER = "ktrainer-manager"


@contextmanager
def quiet_cluster(*, with_original: bool = False) -> Iterator[tuple[Folder, Kubectl]]:
    """A cluster without the JobSet controller and its webhooks."""
    folder = Folder.named(f"bench-{os.getpid()}{'-original' if with_original else ''}")
    products = [product for product in PRODUCTS if with_original or product.name != "original"]
    assets = ensure_assets(products=products)
    lifecycle.up(folder, assets, Options(with_original=with_original), say)
    try:
        processes.running(folder)["jobset-controller"].kill()
        with closing(Api(folder.kubeconfig("admin"))) as api:
            for kind in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
                for each in api.get(f"{_REGISTRATIONS}/{kind}")["items"]:
                    if "jobset" in each["metadata"]["name"]:
                        api.delete(f"{_REGISTRATIONS}/{kind}/{each['metadata']['name']}")
        yield folder, Kubectl(assets.programs["kubectl"], folder.kubeconfig("admin"))
    finally:
        lifecycle.down(folder)


def deploy(folder: Folder, kubectl: Kubectl) -> Deployment:
    """Install ktrainer with its shipped configuration, and start its manager."""
    deployment = Deployment(folder, kubectl)
    deployment.install()
    deployment.start()
    deployment.wait_ready()
    deployment.wait_known()
    deployment.install_runtimes()
    return deployment


def restart(deployment: Deployment) -> None:
    """Stop the manager in an orderly way, empty its log, and start it anew; returns before it is ready."""
    folder = deployment.folder
    process = processes.running(folder)[_MANAGER]
    process.terminate()
    if not wait_for(lambda: _MANAGER not in processes.running(folder), 60):
        raise Problem("the manager does not stop")
    folder.log(_MANAGER).write_text("")
    deployment.start()


def wait_working(deployment: Deployment, seconds: float = 60) -> None:
    """Wait until the controllers of the manager work, which is when all its caches are complete."""
    log = deployment.folder.log(_MANAGER)
    if not wait_for(lambda: "controller starts" in log.read_text(), seconds, 0.02):
        raise Problem(f"the manager does not work after {seconds:g} s:\n{deployment.last_words()}")


def resident_mebibytes(deployment: Deployment) -> float:
    """The memory of the manager."""
    return processes.running(deployment.folder)[_MANAGER].memory_info().rss / 2**20


def cpu_seconds(folder: Folder, component: str = _MANAGER) -> float:
    """The CPU time of a component so far."""
    times = processes.running(folder)[component].cpu_times()
    return times.user + times.system
