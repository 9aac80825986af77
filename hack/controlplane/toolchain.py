"""The Go toolchain: found on PATH, checked for its version, and run with settings that give one result everywhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from controlplane.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

MINIMUM = (1, 26)


@dataclass(frozen=True)
class Toolchain:
    """A Go toolchain of a version that can build the control plane."""

    program: str
    version: str

    @classmethod
    def find(cls) -> Toolchain:
        """Return the toolchain on PATH; raise Problem where there is none or it is too old."""
        program = shutil.which("go")
        wanted = ".".join(map(str, MINIMUM))
        if program is None:
            raise Problem(
                f"Go {wanted} or newer is needed to build the control plane, and no `go` is on PATH: install it, "
                "or put ready programs in a folder and name it in KUBEBUILDER_ASSETS."
            )
        answer = subprocess.run([program, "version"], capture_output=True, text=True, check=False, env=_environment())
        match = re.search(r"\bgo(\d+)\.(\d+)", answer.stdout)
        if answer.returncode or match is None:
            raise Problem(f"{program} does not tell its version: install Go {wanted} or newer.")
        if (int(match[1]), int(match[2])) < MINIMUM:
            raise Problem(f"Go {wanted} or newer is needed, {program} is {match[1]}.{match[2]}: install a newer one.")
        return cls(program, answer.stdout.split()[2])

    def folders(self) -> list[Path]:
        """Return the folders in which Go keeps compiled packages and downloaded modules."""
        answer = self._answer(["env", "GOCACHE", "GOMODCACHE"], Path.cwd())
        return [Path(line) for line in answer.splitlines()]

    def download(self, module: str, folder: Path) -> Path:
        """Download a module that `folder`'s go.mod pins, check it against go.sum, and return its folder."""
        return Path(json.loads(self._answer(["mod", "download", "-json", module], folder))["Dir"])

    def start_build(self, package: str, stamps: dict[str, str], folder: Path, output: Path) -> subprocess.Popen[str]:
        """Start to build one program; its standard error tells each package as it is compiled."""
        flags = " ".join(["-s", "-w", *(f"-X {variable}={value}" for variable, value in stamps.items())])
        command = [self.program, "build", "-v", "-trimpath", "-ldflags", flags, "-o", str(output), package]
        return subprocess.Popen(
            command, cwd=folder, env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def _answer(self, arguments: Sequence[str], folder: Path) -> str:
        command = [self.program, *arguments]
        answer = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
        if answer.returncode:
            raise Problem(f"`go {' '.join(arguments)}` failed: {(answer.stderr or answer.stdout).strip()[-2000:]}")
        return answer.stdout


def _environment() -> dict[str, str]:
    # CGO off and no workspace: the result depends on go.mod and go.sum alone. The local toolchain, because a
    # download of another one would happen silently and behind the version check.
    fixed = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    return {**os.environ, **fixed}
