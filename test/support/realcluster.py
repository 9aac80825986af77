"""One real cluster for a whole test run, and a namespace for each test; a pytest plugin.

With KTRAINER_E2E_CLUSTER set, the cluster of that name, made by `hack/cluster up --nodes 4`, is used and kept. With
KTRAINER_E2E_KUBECONFIG set, any cluster can be used, as its administrator; tests that need one of ours are skipped.
With KTRAINER_E2E_COMPLETE set, the run must have made use of everything that the manager's roles allow.
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
from clusters.api import Api
from clusters.audit import events_of
from clusters.folder import Folder
from clusters.install import apply_all, established, path_of
from clusters.plan import Options
from clusters.wait import wait_for
from controlplane.build import ensure_assets
from controlplane.product import PRODUCTS
from support.rbacproof import forbidden_in, shipped_rights, unused_in
from support.waiting import Waiter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.api import Object
    from controlplane.build import Assets

GIVEN = os.environ.get("KTRAINER_E2E_KUBECONFIG")
KEPT = os.environ.get("KTRAINER_E2E_CLUSTER")
COMPLETE = bool(os.environ.get("KTRAINER_E2E_COMPLETE"))
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
    with new_cluster() as folder:
        yield folder
        _check_rights(folder.file("audit", "audit.log"))


def _check_rights(log: Path) -> None:
    """Fail where the manager was not allowed something; after a complete run, also where it was allowed too much."""
    assert forbidden_in(events_of(log)) == []
    if COMPLETE:
        assert unused_in(shipped_rights(), events_of(log)) == []


@contextmanager
def new_cluster(suffix: str = "", *, with_original: bool = False) -> Iterator[Folder]:
    """Start a cluster with nodes, and remove it at the end; a test that needs one beside the others gives a suffix."""
    folder = Folder.named(f"{_PREFIX}{os.getpid()}{suffix}")
    options = Options(nodes=4, with_original=with_original)
    say = lambda text: print(text, file=sys.stderr)  # noqa: E731, T201 - progress
    lifecycle.up(folder, programs(with_original=with_original), options, say)
    try:
        yield folder
    finally:
        lifecycle.down(folder)


def programs(*, with_original: bool = False) -> Assets:
    """The programs of the control plane, built where they are not there yet."""
    return ensure_assets(products=[product for product in PRODUCTS if with_original or product.name != "original"])


def _remove_abandoned() -> None:
    """Remove the clusters of runs that were killed before they could do it themselves."""
    for folder in Folder.all():
        pid = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if folder.name.startswith(_PREFIX) and pid.isdigit() and not psutil.pid_exists(int(pid)):
            lifecycle.down(folder)


@pytest.fixture(scope="session")
def crds(request: pytest.FixtureRequest) -> Iterator[list[Object]]:
    """Our CRDs, as the cluster serves them; where the cluster has them already, those."""
    crds = [yaml.load(path.read_text(), yaml.CSafeLoader) for path in sorted(_CRDS.glob("*.kubeflow.org.yaml"))]
    with closing(Api(_kubeconfig(request))) as api:
        missing = [crd for crd in crds if not api.exists(path_of(crd))]
        apply_all(api, missing)
        assert wait_for(lambda: established(api, crds), seconds=30), "the CRDs are not served"
        yield [api.get(path_of(crd)) for crd in crds]
        for crd in missing if GIVEN else ():
            api.delete(path_of(crd))


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
