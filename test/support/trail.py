"""What the processes of a test wrote, by the audit log: who, what, when, and whether it succeeded."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.folder import Folder

_WRITES = {"create", "update", "patch", "delete"}


@dataclass(frozen=True)
class Write:
    """One write."""

    agent: str
    """The component in the user agent."""
    verb: str
    resource: str
    name: str
    code: int
    received_at: float
    """Unix time."""
    answered_at: float
    body: dict[str, Any]
    """The object as stored, of resources whose bodies are in the log; else empty."""

    @property
    def is_success(self) -> bool:
        """Whether something was stored."""
        return self.code < 300

    @property
    def is_creation(self) -> bool:
        """Whether there was no such object before."""
        return self.code == 201


class Trail:
    """The audit log of a cluster from now on, as far as it is about one namespace, or all; every method blocks.

    What belongs to no namespace counts where its name begins with that of the namespace.
    """

    def __init__(self, folder: Folder, namespace: str = "") -> None:
        self._path = folder.file("audit", "audit.log")
        self._begin = self._path.stat().st_size
        self._namespace = namespace

    def writes(self, resource: str = "configmaps", agent: str | None = None) -> list[Write]:
        """Return the writes of a resource, all resources where it is empty, in order of their answers.

        Only those of one agent where one is named.
        """
        found = [_write_of(event) for event in self._events() if _is_write(event, resource, self._namespace)]
        return sorted(
            (each for each in found if agent is None or each.agent == agent), key=lambda each: each.answered_at
        )

    def _events(self) -> Iterator[dict[str, Any]]:
        with self._path.open("rb") as log:
            log.seek(self._begin)
            for line in log:
                # Most lines are about something else, and parsing is slow. The last one may be half written.
                if self._namespace.encode() in line and line.endswith(b"\n"):
                    # Nobody asks for what is nested too deeply to be read.
                    with suppress(RecursionError):
                        yield json.loads(line)


def _is_write(event: dict[str, Any], resource: str, namespace: str) -> bool:
    about = event.get("objectRef", {})
    is_done = event["stage"] in {"ResponseComplete", "Panic"} and event["verb"] in _WRITES
    is_ours = not namespace or about.get("namespace", about.get("name", "")[: len(namespace)]) == namespace
    return is_done and resource in {"", about.get("resource")} and is_ours


def _write_of(event: dict[str, Any]) -> Write:
    body = event.get("responseObject", {})
    return Write(
        agent=event.get("userAgent", "").rpartition("/")[2],
        verb=event["verb"],
        resource=event["objectRef"]["resource"],
        name=event["objectRef"].get("name") or body.get("metadata", {}).get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        received_at=_seconds(event["requestReceivedTimestamp"]),
        answered_at=_seconds(event["stageTimestamp"]),
        body=body,
    )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
