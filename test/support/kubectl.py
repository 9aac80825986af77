"""kubectl as a user runs it: what it prints is what the user gets to see."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import yaml

from controlplane.build import ensure_assets
from controlplane.product import PRODUCTS

if TYPE_CHECKING:
    from pathlib import Path

    from clusters.api import Object


@dataclass(frozen=True)
class Printed:
    """What a run of kubectl came to."""

    code: int
    output: str
    errors: str
    """Also where warnings go."""


class Kubectl:
    """kubectl of the control plane's own version."""

    def __init__(self, kubeconfig: Path) -> None:
        kubernetes = [product for product in PRODUCTS if "kubectl" in product.programs]
        self._program = ensure_assets(products=kubernetes).programs["kubectl"]
        self._kubeconfig = kubeconfig

    def run(self, *arguments: str, text: str = "") -> Printed:
        """Run a command, with `text` on its standard input."""
        command = self._command(arguments)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
        return Printed(done.returncode, done.stdout, done.stderr)

    def apply(self, *objects: Object) -> Printed:
        """Apply objects that are in one file, in this order."""
        return self.run("apply", "-f", "-", text=yaml.safe_dump_all(objects))

    def stream(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that prints until it is killed."""
        return subprocess.Popen(self._command(arguments), stdout=subprocess.PIPE, text=True)

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(self._program), f"--kubeconfig={self._kubeconfig}", *arguments]
