"""Waiting for the API server to show something, with a report that explains the wait that was in vain."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clusters.api import Refused
from clusters.logs import last_lines
from clusters.wait import wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from clusters.api import Api, Object
    from clusters.folder import Folder

_CONTROLLERS = ("kube-controller-manager", "jobset-controller", "kwok")


@dataclass(frozen=True)
class Waiter:
    """Waits in one namespace of one cluster."""

    api: Api
    namespace: str
    folder: Folder | None
    """The cluster's folder where it is one of ours: its logs are part of the report."""

    def until(self, path: str, condition: Callable[[Object], bool], what: str, seconds: float = 60.0) -> Object:
        """Return the object at `path` once the condition holds for it; an object that is not there yet is waited for.

        Raises AssertionError after `seconds`, with the object as last seen, the events, and the controllers' logs.
        """
        seen: list[Object] = [{}]

        def holds() -> bool:
            try:
                seen[0] = self.api.get(path)
            except Refused as refusal:
                if refusal.code != 404:
                    raise
                seen[0] = refusal.status
                return False
            return condition(seen[0])

        began = time.monotonic()
        if not wait_for(holds, seconds, interval=0.1):
            raise AssertionError(f"not so after {time.monotonic() - began:.0f} s: {what}\n{self.report(path, seen[0])}")
        return seen[0]

    def until_gone(self, path: str, what: str, seconds: float = 60.0) -> None:
        """Wait until there is no object at `path`; raises as `until` does."""
        seen: list[Object] = [{}]

        def is_gone() -> bool:
            try:
                seen[0] = self.api.get(path)
            except Refused as refusal:
                if refusal.code != 404:
                    raise
                return True
            return False

        if not wait_for(is_gone, seconds, interval=0.1):
            raise AssertionError(f"not so after {seconds:.0f} s: {what}\n{self.report(path, seen[0])}")

    def report(self, path: str, last: Object) -> str:
        """Return what a person would look at: the object, the events of the namespace, the ends of the logs."""
        last.get("metadata", {}).pop("managedFields", None)
        lines = [f"last seen at {path}:", json.dumps(last, indent=2)]
        events = self.api.get(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")["items"]
        lines += ["events:"]
        lines += [
            f"  {each.get('type')} {each.get('reason')} {each['regarding']['name']}: {each.get('note')}"
            for each in events
        ]
        if self.folder is not None:
            for component in _CONTROLLERS:
                lines += [f"{component}:", *(f"  {line}" for line in last_lines(self.folder, component, 8))]
        return "\n".join(lines)


def has_condition(item: Object, condition: str) -> bool:
    """Return whether a condition of the object is true."""
    conditions = item.get("status", {}).get("conditions", [])
    return any(each["type"] == condition and each["status"] == "True" for each in conditions)
