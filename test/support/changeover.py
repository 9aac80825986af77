"""A cluster in which ktrainer takes the place of the original, and the original that of ktrainer.

The steps are those of "From the original, and back" in docs/operations.md; the Deployments are played by processes.
"""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING

from clusters.api import Api
from clusters.install import apply_all, original_of, product_crds_of
from clusters.plan import Plan
from clusters.wait import wait_for
from deployment.account import NAME, NAMESPACE
from deployment.deployment import Deployment, wait_known
from deployment.kubectl import Kubectl
from support.components import Components
from support.realcluster import programs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clusters.folder import Folder

_ORIGINAL = "trainer-controller-manager"
_KTRAINER = "ktrainer-manager"
_GROUP = "/apis/trainer.kubeflow.org/v1alpha1"


class Changeover:
    """The two managers of one cluster, of which one runs at a time; it begins with the original."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._assets = programs(with_original=True)
        self._kubectl = Kubectl(self._assets.programs["kubectl"], folder.kubeconfig("admin"))
        self._components = Components(folder)
        self._plan = Plan.from_json(folder.read_plan())
        self._deployment = Deployment(folder, self._kubectl)

    def wait_original(self) -> None:
        """Wait until the original can work: a new kind is not known as an owner for some seconds."""
        wait_known(self._folder.kubeconfig("trainer"))

    def to_ktrainer(self) -> None:
        """Put ktrainer in the place of the original."""
        self._components.terminate(_ORIGINAL)
        self._deployment.install(force=True)
        self._deployment.start()
        self._deployment.wait_ready()

    def to_original(self) -> None:
        """Put the original in the place of ktrainer, which takes its finalizers off the runtimes first."""
        self._components.terminate(_KTRAINER)
        self._deployment.start({"RuntimeInUseProtection": False})
        with closing(Api(self._folder.kubeconfig("admin"))) as api:
            assert wait_for(lambda: not _finalizers_in(api), 60), _finalizers_in(api)
            self._kubectl("-n", NAMESPACE, "delete", "deployment,networkpolicy,poddisruptionbudget", NAME)
            # Without the seconds in which it would go on answering: there is nobody who asks.
            self._components.kill(_KTRAINER)
            authority = self._folder.file("pki", "ca.crt").read_bytes()
            crds = product_crds_of(self._assets, "original")
            apply_all(api, [*crds, *original_of(self._plan, self._assets, authority)])
        # So much that it tells which TrainJobs it looks at.
        self._components.start(_ORIGINAL, "--zap-log-level=2")

    def wait_reconciled(self, namespace: str, names: Iterable[str]) -> None:
        """Wait until the original, which has come back, has looked at TrainJobs."""
        wanted = {(namespace, name) for name in names}
        assert wait_for(lambda: wanted <= self._reconciled(), 60), wanted - self._reconciled()

    def _reconciled(self) -> set[tuple[str, str]]:
        lines = self._folder.log(_ORIGINAL).read_text().splitlines()
        entries = [json.loads(line) for line in lines if "Reconciling TrainJob" in line]
        return {(entry["trainJob"]["namespace"], entry["trainJob"]["name"]) for entry in entries}


def _finalizers_in(api: Api) -> list[str]:
    """The runtimes that somebody keeps from being deleted."""
    kinds = ("clustertrainingruntimes", "trainingruntimes")
    runtimes = [each for kind in kinds for each in api.get(f"{_GROUP}/{kind}")["items"]]
    return [each["metadata"]["name"] for each in runtimes if each["metadata"].get("finalizers")]
