"""Starting and removing a cluster. A start that fails or is interrupted removes all that it made."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

from clusters import install, processes
from clusters.api import Api, Refused
from clusters.folder import VARIABLE
from clusters.health import is_ready
from clusters.kubeconfig import write_kubeconfigs
from clusters.logs import last_lines
from clusters.pki import Authority, service_account_keys, write_secret
from clusters.plan import Plan, build_plan
from clusters.wait import wait_for
from controlplane.problem import Problem, check_space, writing_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.folder import Folder
    from clusters.plan import Options
    from clusters.processes import Component
    from controlplane.build import Assets

SPACE_FOR_CLUSTER = 500_000_000
"""Bytes that a cluster needs for its store and logs before anybody uses it."""
READY_SECONDS = 90.0
"""How long one step of a start may take: far more than ever seen, so that only what hangs is given up."""


def up(folder: Folder, assets: Assets, options: Options, say: Callable[[str], None]) -> Plan:
    """Start a cluster and return its plan once everything in it is ready.

    Raises Problem where something is in the way or a component dies; nothing is left behind then.
    """
    check_space(folder.path, SPACE_FOR_CLUSTER, VARIABLE)
    folder.create()
    try:
        with writing_to(folder.path, VARIABLE):
            return _Start(folder, assets, options, say).run()
    except BaseException:
        down(folder)
        raise


def down(folder: Folder) -> None:
    """Kill the processes of a cluster and delete its folder; does nothing where there is neither."""
    processes.kill_all(folder)
    folder.remove()


class _Start:
    """One run of `up`: the steps, and the watch over what has been started so far."""

    def __init__(self, folder: Folder, assets: Assets, options: Options, say: Callable[[str], None]) -> None:
        self.folder = folder
        self.assets = assets
        self.options = options
        self.say = say
        self.started: dict[str, int] = {}
        """Component → process id."""
        self.began = time.monotonic()

    def run(self) -> Plan:
        """Take all steps in order."""
        authority, etcd_authority = Authority("authority of the cluster"), Authority("authority of etcd")
        self.write_pki(authority, etcd_authority)
        plan = build_plan(self.folder, self.assets, self.options)
        write_kubeconfigs(self.folder, plan.server, authority)
        self.folder.write_plan(plan.to_json())
        etcd, server, *others = plan.components
        # The API server waits for its store by itself, so both load at the same time.
        self.start(etcd)
        self.start(server)
        self.wait(etcd)
        self.wait(server)
        kubernetes, controllers = others[:2], others[2:]
        for component in kubernetes:
            self.start(component)
        self.install(plan, authority.certificate)
        for component in controllers:
            self.start(component)
        for component in others:
            self.wait(component)
        self.wait_until("the namespaces are served", self.namespaces_are_served)
        self.wait_until("the nodes are ready", lambda: self.nodes_are_ready(plan.nodes))
        self.say(f"ready after {time.monotonic() - self.began:.1f} s")
        return plan

    def write_pki(self, authority: Authority, etcd_authority: Authority) -> None:
        """Write the certificates and keys that the components read."""
        pki = self.folder.file("pki", "ca.crt").parent
        (pki / "ca.crt").write_bytes(authority.certificate)
        (pki / "etcd-ca.crt").write_bytes(etcd_authority.certificate)
        authority.issue("kube-apiserver", serving=True).write(pki / "server.crt", pki / "server.key")
        etcd_authority.issue("etcd", serving=True).write(pki / "etcd.crt", pki / "etcd.key")
        etcd_authority.issue("kube-apiserver").write(pki / "etcd-client.crt", pki / "etcd-client.key")
        private, public = service_account_keys()
        write_secret(pki / "sa.key", private)
        (pki / "sa.pub").write_bytes(public)

    def start(self, component: Component) -> None:
        """Start one component."""
        self.say(f"starting {component.name}")
        self.started[component.name] = processes.start(self.folder, component)

    def install(self, plan: Plan, authority: bytes) -> None:
        """Put CRDs, roles, webhooks and nodes into the cluster, the large CRDs and the rest side by side."""
        self.say("installing CRDs, roles and webhooks")
        crds = install.crds_of(self.assets, with_original=self.options.with_original)
        items = install.objects_of(plan, self.assets, authority)
        with ThreadPoolExecutor(len(crds) + 1) as pool:
            for result in [pool.submit(self.apply, [crd]) for crd in crds] + [pool.submit(self.apply, items)]:
                result.result()
        with closing(self.api()) as api:
            self.wait_until("the CRDs are served", lambda: install.established(api, crds))

    def apply(self, items: list[dict[str, object]]) -> None:
        """Apply objects over a connection of their own."""
        with closing(self.api()) as api:
            try:
                install.apply_all(api, items)
            except Refused as refusal:
                raise Problem(f"the API server refused what every cluster gets: {refusal}") from refusal

    def api(self) -> Api:
        """Return a new connection as the administrator."""
        return Api(self.folder.kubeconfig("admin"))

    def namespaces_are_served(self) -> bool:
        """Return whether pods can be created: a namespace gets its service account from a controller."""
        with closing(self.api()) as api:
            return bool(api.get("/api/v1/namespaces/default/serviceaccounts")["items"])

    def nodes_are_ready(self, count: int) -> bool:
        """Return whether the scheduler can use all fake nodes."""
        with closing(self.api()) as api:
            nodes = api.get("/api/v1/nodes")["items"] if count else []
        conditions = [each for node in nodes for each in node.get("status", {}).get("conditions", [])]
        ready = [each for each in conditions if each["type"] == "Ready" and each["status"] == "True"]
        tainted = [node for node in nodes if node["spec"].get("taints")]
        return len(ready) == count and not tainted

    def wait(self, component: Component) -> None:
        """Wait until a component is ready."""
        self.wait_until(f"{component.name} is ready", lambda: is_ready(self.folder, component))

    def wait_until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait for a condition, and tell at once when a component dies meanwhile."""

        def checked() -> bool:
            self.check_alive()
            return condition()

        if not wait_for(checked, READY_SECONDS):
            raise Problem(f"{what}: not so after {READY_SECONDS:.0f} s.\n{self.last_words(list(self.started))}")

    def check_alive(self) -> None:
        """Raise Problem where a component that was started has ended."""
        for name, pid in self.started.items():
            code = processes.exit_code(pid)
            if code is not None:
                raise Problem(
                    f"{name} ended with {_outcome(code)} while the cluster started.\n{self.last_words([name])}"
                )

    def last_words(self, names: list[str]) -> str:
        """Return the last log lines of components."""
        lines = [f"{name}: {line}" for name in names for line in last_lines(self.folder, name, 10)]
        return "\n".join(lines) or "Its log is empty."


def _outcome(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
