"""The plan of a cluster: its ports and components, as `up` decides them and `cluster.json` keeps them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from clusters import recipes
from clusters.ports import LOOPBACK, check_free, free_ports
from clusters.processes import Component

if TYPE_CHECKING:
    from clusters.folder import Folder
    from controlplane.build import Assets


@dataclass(frozen=True)
class Options:
    """What the user asks of a new cluster."""

    nodes: int = 0
    """How many fake nodes run pods."""
    with_original: bool = False
    """Whether the Go original's manager runs, with its CRDs and webhooks."""
    port: int | None = None
    """Port of the API server; a free one by default."""


@dataclass(frozen=True)
class Plan:
    """Everything that is decided before the first process starts."""

    server: str
    """URL of the API server."""
    webhooks: dict[str, str]
    """Product → URL of its admission webhooks."""
    components: list[Component]
    """In the order in which they start."""
    nodes: int

    def component(self, name: str) -> Component | None:
        """Return the component of a name, None where the cluster has none such."""
        return next((component for component in self.components if component.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Plan:
        """Return the plan that `to_json` gave."""
        components = [Component(**component) for component in document["components"]]
        return cls(document["server"], document["webhooks"], components, document["nodes"])


def build_plan(folder: Folder, assets: Assets, options: Options) -> Plan:
    """Choose ports and write out the command of each component."""
    if options.port is not None:
        check_free(options.port)
    etcd, peer, server, manager, scheduler, jobset, jobset_health, kwok, original, original_health = free_ports(10)
    server = options.port or server
    programs = assets.programs
    components = [
        recipes.etcd(folder, programs["etcd"], etcd, peer),
        recipes.api_server(folder, programs["kube-apiserver"], server, etcd),
        recipes.controller_manager(folder, programs["kube-controller-manager"], manager),
        recipes.scheduler(folder, programs["kube-scheduler"], scheduler),
        recipes.jobset(folder, programs["jobset-controller"], jobset, jobset_health),
    ]
    webhooks = {"jobset": f"https://{LOOPBACK}:{jobset}"}
    if options.nodes:
        components.append(recipes.kwok(folder, programs["kwok"], kwok))
    if options.with_original:
        components.append(recipes.original(folder, programs["trainer-controller-manager"], original, original_health))
        webhooks["original"] = f"https://{LOOPBACK}:{original}"
    return Plan(f"https://{LOOPBACK}:{server}", webhooks, components, options.nodes)
