"""Killing, stopping and starting the components of a cluster while a test runs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import psutil

from clusters import processes
from clusters.health import is_ready
from clusters.plan import Plan
from clusters.wait import wait_for

if TYPE_CHECKING:
    from clusters.folder import Folder
    from clusters.processes import Component

_SECONDS = 60.0


class Components:
    """The processes of one cluster, by the names that `hack/cluster status` shows."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._plan = Plan.from_json(folder.read_plan())

    def kill(self, name: str) -> None:
        """End a component at once, as a power cut would, and wait until it is gone."""
        self._end(name, signal.SIGKILL)

    def terminate(self, name: str) -> None:
        """Ask a component to end, and wait until it has."""
        self._end(name, signal.SIGTERM)

    def freeze(self, name: str) -> None:
        """Stop a component where it is; its connections stay open and silent."""
        processes.running(self._folder)[name].send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Let a frozen component go on."""
        processes.running(self._folder)[name].send_signal(signal.SIGCONT)

    def start(self, name: str, *extra_flags: str) -> None:
        """Start a component that is down, with its old command line and more flags, and wait until it is ready."""
        component = self._component(name)
        changed = type(component)(
            name, [*component.command, *extra_flags], component.probe, environment=component.environment
        )
        processes.start(self._folder, changed)
        if not wait_for(lambda: is_ready(self._folder, component), _SECONDS):
            raise AssertionError(f"{name} is not ready {_SECONDS:.0f} s after its start")

    def restart(self, name: str, *extra_flags: str) -> None:
        """Kill a component and start it again."""
        self.kill(name)
        self.start(name, *extra_flags)

    def _component(self, name: str) -> Component:
        component = self._plan.component(name)
        assert component is not None, f"the cluster has no {name}"
        return component

    def _end(self, name: str, number: signal.Signals) -> None:
        process = processes.running(self._folder)[name]
        process.send_signal(number)
        _, alive = psutil.wait_procs([process], timeout=_SECONDS)
        assert not alive, f"{name} still runs {_SECONDS:.0f} s after {number.name}"
