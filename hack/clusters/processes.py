"""The processes of a cluster: started detached, and found again by the marks in their environment.

There are no pid files: a mark cannot be stale, and finds also what was started a moment before its starter was killed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from clusters.folder import Folder

_CLUSTER = "KTRAINER_CLUSTER"
_COMPONENT = "KTRAINER_COMPONENT"
_KILL_SECONDS = 10.0


@dataclass(frozen=True)
class Component:
    """One process of a cluster: what to run, and the address that tells whether it is ready."""

    name: str
    command: list[str]
    probe: str
    """URL that answers 200 when the component is ready."""
    environment: dict[str, str] = field(default_factory=dict)


def start(folder: Folder, component: Component) -> int:
    """Start a component in a session of its own, its output appended to its log, and return the process id."""
    log = str(folder.log(component.name))
    mark = {_CLUSTER: str(folder.path), _COMPONENT: component.name}
    append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # One system call, unlike Popen: an interrupt comes before or after it, and what was started carries its mark.
    return os.posix_spawn(
        component.command[0],
        component.command,
        {**os.environ, **component.environment, **mark},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, append, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def exit_code(pid: int) -> int | None:
    """Return the exit code of a child that ended (negative: the signal that killed it), None while it runs."""
    try:
        ended, status = os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return None if psutil.pid_exists(pid) else 0
    return os.waitstatus_to_exitcode(status) if ended else None


def running(folder: Folder) -> dict[str, psutil.Process]:
    """Return the live processes of a cluster by component."""
    found = {}
    for process in psutil.process_iter():
        try:
            environment = process.environ()
            if environment.get(_CLUSTER) == str(folder.path) and process.status() != psutil.STATUS_ZOMBIE:
                found[environment.get(_COMPONENT, str(process.pid))] = process
        except (psutil.Error, OSError):
            # Ended meanwhile, or somebody else's.
            continue
    return found


def kill_all(folder: Folder) -> None:
    """Kill every process of a cluster and wait until all are gone.

    Killed, not asked to stop: what they would write on their way out is deleted next, and a stopped one cannot answer.
    """
    # A component may have been started while the list was made, so look again until there is none.
    while processes := list(running(folder).values()):
        for process in processes:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(processes, timeout=_KILL_SECONDS)
