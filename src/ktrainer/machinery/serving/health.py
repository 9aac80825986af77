"""Health checks: named questions that are answered by not raising, and the report that probes get.

A probe is to tell the truth: green only if the process can do its work, and red only if a restart (or, for readiness,
other replicas) would help. The reasons of failures are told, too; a check that raises anything but `Unhealthy` keeps
its reason to the log, because the endpoint is open to everybody.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Collection

_log = structlog.get_logger(__name__)

CHECK_SECONDS = 10.0
"""How long one check may take."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")

Check = Callable[[], Awaitable[None] | None]
"""Returns when all is well and raises when it is not."""


class Unhealthy(Exception):
    """A check failed; the message is for everybody to read."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check."""

    name: str
    reason: str | None = None
    """Why the check failed; None when it did not."""
    is_excluded: bool = False

    def __str__(self) -> str:
        if self.reason is not None:
            return f"[-]{self.name} failed: {self.reason}"
        return f"[+]{self.name} excluded: ok" if self.is_excluded else f"[+]{self.name} ok"


class HealthChecks:
    """The checks of one endpoint, such as healthz."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self._checks: dict[str, Check] = {}
        self._failing: frozenset[str] = frozenset()
        """The checks that failed at the last full run."""

    def add(self, name: str, check: Check) -> None:
        """Add a check; raises ValueError when the name is taken or does not fit into a path."""
        if not _NAME.fullmatch(name):
            raise ValueError(f"not a name for a check: {name!r}")
        if name in self._checks:
            raise ValueError(f"{self.endpoint} has a check named {name} already")
        self._checks[name] = check

    def __contains__(self, name: str) -> bool:
        return name in self._checks

    async def run(self, excluded: Collection[str] = ()) -> list[Finding]:
        """Run all checks but the excluded ones at a time, and return what they found, by name."""
        names = sorted(self._checks)
        async with asyncio.TaskGroup() as running:
            tasks = {name: running.create_task(self.run_one(name)) for name in names if name not in excluded}
        findings = [tasks[name].result() if name in tasks else Finding(name, is_excluded=True) for name in names]
        self._note({finding.name: finding.reason for finding in findings if finding.reason is not None})
        return findings

    async def run_one(self, name: str) -> Finding:
        """Run one check; raises KeyError when there is none of that name."""
        check = self._checks[name]
        limit = asyncio.timeout(CHECK_SECONDS)
        try:
            async with limit:
                waiting = check()
                if waiting is not None:
                    await waiting
        except Unhealthy as unhealthy:
            return Finding(name, _on_one_line(str(unhealthy)))
        except Exception as error:  # a check that is broken has failed
            if limit.expired():
                return Finding(name, "took too long")
            _log.warning(
                "health check failed", endpoint=self.endpoint, check=name, error=f"{type(error).__name__}: {error}"
            )
            return Finding(name, "reason withheld")
        return Finding(name)

    def _note(self, failing: dict[str, str]) -> None:
        if failing.keys() == self._failing:
            return
        self._failing = frozenset(failing)
        if failing:
            _log.warning("health checks fail", endpoint=self.endpoint, failing=failing)
        else:
            _log.info("health checks pass", endpoint=self.endpoint)


def render(endpoint: str, findings: list[Finding], excluded: Collection[str], *, verbose: bool) -> str:
    """Return the text that a probe gets: all findings when it asks for them or one is bad, else just ok."""
    is_healthy = all(finding.reason is None for finding in findings)
    if is_healthy and not verbose:
        return "ok"
    lines = [str(finding) for finding in findings]
    unknown = sorted(set(excluded) - {finding.name for finding in findings})
    if unknown:
        lines.append("warn: no checks to exclude: " + ", ".join(_on_one_line(name) for name in unknown))
    lines.append(f"{endpoint} check {'passed' if is_healthy else 'failed'}")
    return "\n".join(lines) + "\n"


def _on_one_line(text: str) -> str:
    """Nobody shall add findings of their own by what they are called or what they say."""
    return " ".join(text.split())
