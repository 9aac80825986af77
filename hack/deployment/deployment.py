"""Installs ktrainer into a cluster of hack/clusters and starts its manager."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from clusters import processes
from clusters.api import Api, Refused
from clusters.health import is_ready
from clusters.logs import last_lines
from clusters.plan import Plan
from clusters.wait import wait_for
from controlplane.problem import Problem
from deployment.account import write_account
from deployment.overlay import CONFIG, write_overlay
from deployment.replica import Ports, build_replica

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clusters.folder import Folder
    from clusters.processes import Component
    from deployment.kubectl import Kubectl

ALL: Final = ("default",)
"""All that an installation is."""

READY_SECONDS: Final = 60.0
"""How long a manager may take on a busy machine."""


class Deployment:
    """ktrainer in one cluster, with one replica of its manager."""

    def __init__(self, folder: Folder, kubectl: Kubectl) -> None:
        self.folder = folder
        self.kubectl = kubectl
        self.ports = Ports.free()
        self.replica: Component | None = None
        self._pid = 0

    def install(self, *parts: str, force: bool = False) -> str:
        """Apply folders of config/, all of it by default, with force over what others own; return what kubectl says."""
        overlay = write_overlay(self.folder.file("deployment", "x").parent, parts or ALL, self.ports.url)
        flags = ["--force-conflicts"] if force else []
        return self.kubectl("apply", "--server-side", *flags, "-k", str(overlay))

    def install_runtimes(self) -> str:
        """Apply the runtimes."""
        return self.kubectl("apply", "--server-side", "-k", str(CONFIG / "runtimes"))

    def start(self, gates: Mapping[str, bool] | None = None) -> Component:
        """Start the manager with the token of its service account, which must be installed; `gates` are set anew."""
        kubeconfig = self.folder.kubeconfig("manager")
        admin = self.folder.kubeconfig("admin")
        with closing(Api(admin)) as api:
            write_account(api, admin, kubeconfig)
        self.replica = build_replica(self.folder, kubeconfig, self.ports, gates=gates)
        # With its place in the plan, `hack/cluster status` and `logs` know it too.
        plan = Plan.from_json(self.folder.read_plan())
        others = [each for each in plan.components if each.name != self.replica.name]
        self.folder.write_plan(replace(plan, components=[*others, self.replica]).to_json())
        self._pid = processes.start(self.folder, self.replica)
        return self.replica

    @property
    def is_ready(self) -> bool:
        """Whether the manager says so."""
        return self.replica is not None and is_ready(self.folder, self.replica)

    @property
    def has_ended(self) -> bool:
        """Whether the manager was started and runs no more."""
        return self.replica is not None and processes.exit_code(self._pid) is not None

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until the manager is ready; raise Problem with its last words where it is not."""
        if not wait_for(lambda: self.is_ready or self.has_ended, seconds) or self.has_ended:
            fate = "has ended" if self.has_ended else f"is not ready after {seconds:g} s"
            raise Problem(f"the manager {fate}.\n{self.last_words()}")

    def wait_known(self) -> None:
        """Wait until a TrainJob can own objects: where that is checked, a new kind is not known for some seconds."""
        wait_known(self.folder.kubeconfig("manager"))

    def last_words(self) -> str:
        """The last lines of the manager's log."""
        return "\n".join(last_lines(self.folder, "ktrainer-manager", 10))


def wait_known(manager: Path) -> None:
    """Wait until a TrainJob can own objects, in the eyes of a manager with this kubeconfig; raise Problem if never."""
    # Asked as the manager: who may delete the object itself is not looked at that closely.
    with closing(Api(manager)) as api:
        if not wait_for(lambda: _is_known(api), READY_SECONDS, 0.5):
            raise Problem(f"TrainJobs cannot own objects {READY_SECONDS:g} s after their CRD was installed.")


def _is_known(api: Api) -> bool:
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "none", "uid": "none"}
    metadata = {"name": "probe", "ownerReferences": [{**owner, "blockOwnerDeletion": True}]}
    probe = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    try:
        api.create("/api/v1/namespaces/default/configmaps?dryRun=All", probe)
    except Refused as refusal:
        if "RESTMapping" not in str(refusal):
            raise
        return False
    return True
