"""One real cluster for a whole test run, and a namespace for each test; a pytest plugin.

With KTRAINER_E2E_CLUSTER set, the cluster of that name, made by `hack/cluster up --nodes 4`, is used and kept. With
KTRAINER_E2E_KUBECONFIG set, any cluster can be used, as its administrator; tests that need one of ours are skipped.
"""

from __future__ import annotations

import os
import sys
import uuid
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest
import yaml

from clusters import lifecycle
from clusters.api import Api, Refused
from clusters.folder import Folder
from clusters.install import apply_all, established, path_of
from clusters.plan import Options
from clusters.wait import wait_for
from controlplane.build import ensure_assets
from controlplane.product import PRODUCTS
from support.waiting import Waiter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.api import Object

GIVEN = os.environ.get("KTRAINER_E2E_KUBECONFIG")
KEPT = os.environ.get("KTRAINER_E2E_CLUSTER")
_PREFIX = "e2e-"
_CRDS = Path(__file__).parents[2] / "config" / "crd"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Folder]:
    """The cluster of this run; skips where a kubeconfig was given, since that one is not ours."""
    if GIVEN:
        pytest.skip("needs a cluster of its own, and KTRAINER_E2E_KUBECONFIG names another")
    if KEPT:
        yield Folder.named(KEPT)
        return
    _remove_abandoned()
    folder = Folder.named(f"{_PREFIX}{os.getpid()}")
    assets = ensure_assets(products=[product for product in PRODUCTS if product.name != "original"])
    lifecycle.up(folder, assets, Options(nodes=4), lambda text: print(text, file=sys.stderr))  # noqa: T201 - progress
    yield folder
    lifecycle.down(folder)


def _remove_abandoned() -> None:
    """Remove the clusters of runs that were killed before they could do it themselves."""
    for folder in Folder.all():
        pid = folder.name.removeprefix(_PREFIX)
        if folder.name.startswith(_PREFIX) and pid.isdigit() and not psutil.pid_exists(int(pid)):
            lifecycle.down(folder)


@pytest.fixture(scope="session")
def crds(request: pytest.FixtureRequest) -> Iterator[list[Object]]:
    """Our CRDs, as the cluster serves them; where the cluster has them already, those."""
    crds = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted(_CRDS.glob("*.yaml"))]
    with closing(Api(_kubeconfig(request))) as api:
        missing = [crd for crd in crds if not _exists(api, path_of(crd))]
        apply_all(api, missing)
        assert wait_for(lambda: established(api, crds), seconds=30), "the CRDs are not served"
        yield [api.get(path_of(crd)) for crd in crds]
        for crd in missing if GIVEN else ():
            api.delete(path_of(crd))


def _exists(api: Api, path: str) -> bool:
    try:
        api.get(path)
    except Refused as refusal:
        if refusal.code != 404:
            raise
        return False
    return True


def _kubeconfig(request: pytest.FixtureRequest) -> Path:
    if GIVEN:
        return Path(GIVEN)
    folder: Folder = request.getfixturevalue("cluster")
    return folder.kubeconfig("admin")


@pytest.fixture
def admin(request: pytest.FixtureRequest) -> Iterator[Api]:
    """The API server, as its administrator."""
    with closing(Api(_kubeconfig(request))) as api:
        yield api


@contextmanager
def new_namespace(admin: Api) -> Iterator[str]:
    """Make a namespace that nobody else uses, and ask for its deletion at the end."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    admin.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
def namespace(admin: Api) -> Iterator[str]:
    """A namespace that only this test uses."""
    with new_namespace(admin) as name:
        yield name


@pytest.fixture
def waiter(request: pytest.FixtureRequest, admin: Api, namespace: str) -> Waiter:
    """Waits for what happens in the test's namespace."""
    return Waiter(admin, namespace, None if GIVEN else request.getfixturevalue("cluster"))
