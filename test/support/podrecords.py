"""Pods of a JobSet as an API server shows them, with what became of their containers."""

from __future__ import annotations

from typing import Any

J = dict[str, Any]


def at(seconds: int) -> str:
    """A time of the day of the tests, in seconds since its hour three."""
    return f"2026-01-02T{3 + seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}Z"


def ended(code: int = 1, finished: int | None = 100, **fields: Any) -> J:
    """The state of a container that has ended."""
    times = {} if finished is None else {"finishedAt": at(finished)}
    return {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", **times, **fields}}


def container(state: J, last: J | None = None, name: str = "node") -> J:
    """The status of a container."""
    return {"name": name, "state": state, "lastState": last or {}}


def pod(name: str, *containers: J, init: list[J] | None = None, attempt: int = 0, **fields: Any) -> J:
    """A pod of the replicated job `node`, failed and not deleted unless told otherwise."""
    deleted: int | None = fields.pop("deleted", None)
    metadata: J = {
        "name": name,
        "creationTimestamp": at(0),
        "labels": {
            "jobset.sigs.k8s.io/replicatedjob-name": "node",
            "jobset.sigs.k8s.io/restart-attempt": str(attempt),
        },
    }
    if deleted is not None:
        # The timestamp is when the grace period ends.
        metadata |= {"deletionTimestamp": at(deleted + 30), "deletionGracePeriodSeconds": 30}
    status = {"phase": "Failed", "containerStatuses": list(containers), "initContainerStatuses": init or [], **fields}
    return {"metadata": metadata, "spec": {"nodeName": f"worker-{name}"}, "status": status}


def disrupted(reason: str, seconds: int, message: str = "") -> J:
    """The condition of a pod that somebody else ended."""
    return {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": at(seconds),
    }
