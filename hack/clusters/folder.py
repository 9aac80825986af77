"""The folder of a cluster: where its files are, and which clusters exist."""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controlplane.problem import Problem, writing_to

VARIABLE = "XDG_STATE_HOME"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")


def clusters_folder() -> Path:
    """Return the folder that holds all clusters of this user."""
    state = os.environ.get(VARIABLE) or Path.home() / ".local" / "state"
    return Path(state).absolute() / "ktrainer" / "clusters"


@dataclass(frozen=True)
class Folder:
    """The files of one cluster. Its `cluster.json` is the plan that `up` followed."""

    path: Path

    @classmethod
    def named(cls, name: str) -> Folder:
        """Return the folder of a name; raise Problem where the name cannot be one."""
        if not _NAME.fullmatch(name):
            raise Problem(f"{name!r} is no name for a cluster: use 1 to 40 of a-z, 0-9 and -, not first or last a -.")
        return cls(clusters_folder() / name)

    @classmethod
    def all(cls) -> list[Folder]:
        """Return the folders of all clusters, sorted by name."""
        root = clusters_folder()
        return [cls(path) for path in sorted(root.iterdir()) if path.is_dir()] if root.is_dir() else []

    @property
    def name(self) -> str:
        """The cluster's name."""
        return self.path.name

    @property
    def exists(self) -> bool:
        """Whether the cluster exists; what it says of its processes is another question."""
        return self.path.is_dir()

    def file(self, *parts: str) -> Path:
        """Return the path of a file in the folder, its parent made."""
        path = self.path.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def log(self, component: str) -> Path:
        """Return the path of a component's log."""
        return self.file("logs", f"{component}.log")

    def kubeconfig(self, user: str) -> Path:
        """Return the path of a user's kubeconfig."""
        return self.file("kubeconfig", f"{user}.yaml")

    def create(self) -> None:
        """Make the folder; raise Problem where it exists or cannot be made."""
        with writing_to(self.path.parent, VARIABLE):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                # Making the folder is the lock: of two that start the same cluster, one gets it. Only the user may
                # look inside, there are keys.
                self.path.mkdir(mode=0o700)
            except FileExistsError:
                raise Problem(
                    f"the cluster {self.name!r} exists: see `hack/cluster status --name {self.name}`, "
                    f"or remove it with `hack/cluster down --name {self.name}`."
                ) from None

    def remove(self) -> None:
        """Delete the folder, and the folder of all clusters when this was the last one."""
        shutil.rmtree(self.path, ignore_errors=True)
        for parent in (self.path.parent, self.path.parent.parent):
            try:
                parent.rmdir()
            except OSError:
                break

    def write_plan(self, plan: dict[str, Any]) -> None:
        """Store the plan, whole or not at all."""
        scratch = self.file("cluster.json.tmp")
        scratch.write_text(json.dumps(plan, indent=2))
        scratch.replace(self.file("cluster.json"))

    def read_plan(self) -> dict[str, Any]:
        """Return the stored plan; raise Problem where there is none."""
        if not self.exists:
            raise Problem(f"there is no cluster {self.name!r}: start it with `hack/cluster up --name {self.name}`.")
        try:
            plan: dict[str, Any] = json.loads((self.path / "cluster.json").read_text())
        except (OSError, ValueError):
            raise Problem(
                f"the cluster {self.name!r} is being started, or its start was cut off: "
                f"wait, or remove it with `hack/cluster down --name {self.name}`."
            ) from None
        return plan
