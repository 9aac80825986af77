"""How we name ourselves to the API server: in its audit log this tells who did what."""

from __future__ import annotations

import platform
import re

from ktrainer import __version__

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9._-]+")


def user_agent(component: str) -> str:
    """The User-Agent of one component, such as `ktrainer/0.1.0 (linux/amd64) kubernetes/unknown/manager`.

    The commit that clients in Go put after `kubernetes` is not known to an installed package.
    """
    machine = platform.machine().lower()
    system = f"{platform.system().lower()}/{_ARCHITECTURES.get(machine, machine)}"
    return f"ktrainer/{__version__} ({system}) kubernetes/unknown/{_NOT_ALLOWED.sub('-', component)}"
