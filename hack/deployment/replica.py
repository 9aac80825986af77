"""A replica of the manager: a process of the cluster, started as its pods start it, on ports of loopback."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from clusters.ports import LOOPBACK, free_ports
from clusters.processes import Component
from deployment.overlay import CONFIG

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clusters.folder import Folder

Object = dict[str, Any]

SHIPPED = CONFIG / "manager" / "controller_manager_config.yaml"


@dataclass(frozen=True)
class Ports:
    """Where a replica listens."""

    webhook: int
    metrics: int
    health: int
    progress: int

    @classmethod
    def free(cls) -> Ports:
        """Ports that nobody uses."""
        return cls(*free_ports(4))

    @property
    def url(self) -> str:
        """Where its webhooks are called."""
        return f"https://{LOOPBACK}:{self.webhook}"


def build_configuration(ports: Ports, gates: Mapping[str, bool] | None = None) -> Object:
    """Build the shipped configuration with addresses of loopback and some feature gates of one's own."""
    document: Object = yaml.safe_load(SHIPPED.read_text())
    document["webhook"] = {**document["webhook"], "host": LOOPBACK, "port": ports.webhook}
    document["metrics"] = {**document["metrics"], "bindAddress": f"{LOOPBACK}:{ports.metrics}"}
    document["health"] = {**document["health"], "healthProbeBindAddress": f"{LOOPBACK}:{ports.health}"}
    document["statusServer"] = {**document.get("statusServer", {}), "port": ports.progress}
    if gates:
        document["featureGates"] = {**document.get("featureGates", {}), **gates}
    return document


def build_replica(
    folder: Folder,
    kubeconfig: Path,
    ports: Ports,
    name: str = "ktrainer-manager",
    gates: Mapping[str, bool] | None = None,
) -> Component:
    """Write the configuration and return the process to start."""
    config = folder.file(name, "config.yaml")
    config.write_text(yaml.safe_dump(build_configuration(ports, gates), sort_keys=False))
    command = [sys.executable, "-P", "-m", "ktrainer", "manager", f"--config={config}", f"--kubeconfig={kubeconfig}"]
    return Component(name, [*command, "--log-format=json"], f"http://{LOOPBACK}:{ports.health}/readyz")
