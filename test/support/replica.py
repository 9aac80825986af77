"""A program under test as a process of its own, which can be killed, stopped and started again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

# Without the folder of the script on its path: what it imports is what a user has installed.
COPIER = (sys.executable, "-P", str(Path(__file__).with_name("copier.py")))
"""The command of `support.copier`, to which `Replica` adds its options."""


@dataclass(frozen=True)
class Settings:
    """The options of the program; any program that is tested here understands them."""

    kubeconfig: Path
    namespace: str
    lease: str = ""
    """Without one there is no election."""
    workers: int = 1
    delay: float = 0.0
    """Seconds that a turn spends between its writes."""
    health_port: int = 0

    def arguments(self, agent: str) -> list[str]:
        """Return them as arguments, `agent` being how the process is called in the audit log."""
        texts = {
            "kubeconfig": self.kubeconfig,
            "namespace": self.namespace,
            "agent": agent,
            "lease": self.lease,
            "workers": self.workers,
            "delay": self.delay,
            "health-port": self.health_port,
        }
        return [f"--{name}={value}" for name, value in texts.items()]


class Replica:
    """One place in which the program runs, one process after the other."""

    def __init__(self, settings: Settings, folder: Path, name: str, program: Sequence[str] = COPIER) -> None:
        self._program = program
        self._settings = settings
        self._folder = folder
        self._name = name
        self._process: subprocess.Popen[bytes] | None = None
        self.agents: list[str] = []
        """What each process was called, in the order of their starts."""

    @property
    def agent(self) -> str:
        """What the latest process is called."""
        return self.agents[-1]

    @property
    def is_running(self) -> bool:
        """Whether the process is there, maybe stopped."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the program; it is not waited for."""
        assert not self.is_running, f"{self.agent} runs already"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.agents.append(f"{self._name}-{len(self.agents)}")
        with self._log_path.open("wb") as log:
            command = [*self._program, *self._settings.arguments(self.agent)]
            self._process = subprocess.Popen(
                command, env=_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        """End the process at once; nothing happens where there is none."""
        self._signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the process to end."""
        self._signal(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop the process where it is."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the process go on."""
        self._signal(signal.SIGCONT)

    def wait(self, seconds: float = 10.0) -> None:
        """Wait for the end of the process, where no event loop runs."""
        assert self._process is not None
        self._process.wait(seconds)

    async def exit_code(self, seconds: float) -> tuple[int, float]:
        """Wait for the end of the process; return its code (negative: the signal) and how long that took."""
        assert self._process is not None
        began = time.monotonic()
        try:
            async with asyncio.timeout(seconds):
                code = await asyncio.to_thread(self._process.wait)
        except TimeoutError:
            raise AssertionError(f"{self.agent} still runs after {seconds:g} s:\n{self.tail()}") from None
        return code, time.monotonic() - began

    def log(self, agent: str | None = None) -> list[dict[str, Any]]:
        """Return what the latest process, or another, has logged; what is no JSON comes as the event of an entry."""
        entries: list[dict[str, Any]] = []
        path = self._folder / f"{agent or self.agent}.log"
        for line in path.read_text(errors="replace").splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                entries.append({"event": line})
        return entries

    def logged(self, event: str) -> list[dict[str, Any]]:
        """Return the entries of one event."""
        return [entry for entry in self.log() if entry["event"] == event]

    def logged_at(self, event: str) -> float:
        """Return the Unix time of the first entry of an event."""
        return _seconds_of(self.logged(event)[0])

    @property
    def loaded_at(self) -> float:
        """The Unix time of the first entry: the program has been read, which on a busy machine takes seconds."""
        return _seconds_of(self.log()[0])

    @property
    def is_leading(self) -> bool:
        """Whether the process has become leader, and has not said that it stopped."""
        return self.is_running and bool(self.logged("became leader")) and not self.logged("stopped leading")

    def identities(self) -> dict[str, str]:
        """Return as whom each process took part in the election: identity → agent."""
        return {
            entry["identity"]: agent
            for agent in self.agents
            for entry in self.log(agent)
            if entry["event"] == "waiting to become leader"
        }

    def tail(self) -> str:
        """Return the end of the log, for a message."""
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-15:])

    @property
    def _log_path(self) -> Path:
        return self._folder / f"{self.agent}.log"

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)


def _environment() -> dict[str, str]:
    """Without what makes coverage follow: what is measured here is the program alone."""
    return {name: value for name, value in os.environ.items() if not name.startswith("COV")}


def _seconds_of(entry: dict[str, Any]) -> float:
    return datetime.fromisoformat(entry["timestamp"]).timestamp()


@asynccontextmanager
async def running(*replicas: Replica) -> AsyncIterator[None]:
    """Start replicas one after the other, and leave none behind."""
    try:
        for replica in replicas:
            await asyncio.to_thread(replica.start)
        yield
    finally:
        for replica in replicas:
            replica.kill()
        for replica in replicas:
            if replica.agents:
                await replica.exit_code(10)
