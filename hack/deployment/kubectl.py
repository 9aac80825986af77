"""kubectl, as a user runs it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Kubectl:
    """The program, and whose kubeconfig it uses."""

    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str) -> str:
        """Run one command and return what it prints; raise Problem with its own words where it fails."""
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        # A session of its own: Ctrl-C is for the program that called, which ends this one with the cluster.
        done = subprocess.run(
            [self.program, *arguments], env=environment, capture_output=True, text=True, start_new_session=True
        )
        if done.returncode:
            raise Problem(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout
