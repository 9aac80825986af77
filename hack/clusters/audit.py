"""The audit log of a cluster: who asked for what, when, and what became of it. The ground truth of tests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clusters.kubeconfig import IDENTITIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [
        # Bodies only where they prove something; never those of Secrets.
        {
            "level": "RequestResponse",
            "verbs": ["create", "update", "patch", "delete"],
            "resources": [
                {"group": "trainer.kubeflow.org"},
                {"group": "jobset.x-k8s.io"},
                {"group": "scheduling.x-k8s.io"},
                {"group": "scheduling.volcano.sh"},
                {"group": "coordination.k8s.io"},
            ],
        },
        {"level": "Metadata"},
    ],
}


def events_of(log: Path, user: str | None = None) -> Iterator[dict[str, Any]]:
    """Yield the audit events in order, only those of one user where one is named (as its kubeconfig, or in full)."""
    wanted = IDENTITIES[user][0] if user in IDENTITIES else user
    if not log.exists():
        return
    with log.open() as lines:
        for line in lines:
            try:
                event: dict[str, Any] = json.loads(line)
            except (ValueError, RecursionError):
                # The last line may be half written, and an object nested deeper than any sound one.
                continue
            if wanted is None or event.get("user", {}).get("username") == wanted:
                yield event


def describe(event: dict[str, Any]) -> str:
    """Return an event as one line: time, user, verb, address, answer."""
    code = event.get("responseStatus", {}).get("code", "-")
    user = event.get("user", {}).get("username", "-")
    return f"{event['requestReceivedTimestamp']} {user} {event['verb']} {event['requestURI']} {code}"
