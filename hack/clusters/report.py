"""What a cluster is like now: which components run and answer, and which do not."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusters.health import is_ready
from clusters.logs import last_lines
from clusters.plan import Plan
from clusters.processes import running

if TYPE_CHECKING:
    from clusters.folder import Folder


@dataclass(frozen=True)
class State:
    """One component, as it is now."""

    name: str
    word: str
    """`ready`, `not ready` (it runs and does not answer) or `down`."""
    pid: int | None = None
    seconds: float = 0.0
    """How long it has been running."""


def states_of(folder: Folder) -> list[State]:
    """Return the state of every component that the cluster should have."""
    plan = Plan.from_json(folder.read_plan())
    alive = running(folder)
    states = []
    for component in plan.components:
        process = alive.get(component.name)
        if process is None:
            states.append(State(component.name, "down"))
        else:
            word = "ready" if is_ready(folder, component) else "not ready"
            states.append(State(component.name, word, process.pid, time.time() - process.create_time()))
    return states


def describe(folder: Folder, states: list[State]) -> str:
    """Return the states as a table, and the last log lines of what is not ready."""
    plan = Plan.from_json(folder.read_plan())
    lines = [f"cluster {folder.name} at {plan.server}, in {folder.path}", ""]
    lines += [f"  {'COMPONENT':28}{'STATE':12}{'PID':>8}{'AGE':>10}"]
    for state in states:
        age = f"{state.seconds:.0f} s" if state.pid else ""
        lines.append(f"  {state.name:28}{state.word:12}{state.pid or '':>8}{age:>10}")
    for state in states:
        if state.word != "ready":
            lines += ["", f"{state.name} is {state.word}; the last lines of its log:"]
            lines += [f"  {line}" for line in last_lines(folder, state.name, 10)]
    return "\n".join(lines)
