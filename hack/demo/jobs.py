"""The example TrainJobs, made ready for fake nodes, and what has become of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from clusters.stages import RUNS_FOR

ROOT = Path(__file__).parents[2]
RUNTIMES = ROOT / "config" / "runtimes"
EXAMPLES = ROOT / "examples" / "trainjobs"

ENDS = frozenset({"Complete", "Failed"})
"""The states that nothing follows."""

Object = dict[str, Any]

_MANAGER = "ktrainer.example/fake-nodes"
_LONG_SECONDS = 300


@dataclass(frozen=True)
class Row:
    """A TrainJob as it is now."""

    name: str
    runtime: str
    state: str
    nodes: int
    pods: str
    """How many pods there are and what they do, in words."""
    note: str
    """Why it is not what one would wish; empty where all is well."""
    seconds: float
    """How long it has been there, or was until it ended."""


def read_examples() -> list[Object]:
    """All examples, each with a patch that lets its pods run for some seconds on fake nodes."""
    paths = sorted(EXAMPLES.glob("*.yaml"))
    return [_prepared(yaml.safe_load(path.read_text()), 3 + index) for index, path in enumerate(paths)]


def _prepared(trainjob: Object, seconds: int) -> Object:
    runtime = yaml.safe_load((RUNTIMES / f"{trainjob['spec']['runtimeRef']['name']}.yaml").read_text())
    spec = runtime["spec"]["template"]["spec"]
    waited_for = set(spec.get("successPolicy", {}).get("targetReplicatedJobs", ()))
    patches = []
    for job in (each["name"] for each in spec["replicatedJobs"]):
        # Where the end of one job is the end of all, the others serve it until then.
        length = _LONG_SECONDS if waited_for and job not in waited_for else seconds
        metadata = {"annotations": {RUNS_FOR: f"{length}s"}}
        patches.append({"name": job, "template": {"spec": {"template": {"metadata": metadata}}}})
    patch = {
        "manager": _MANAGER,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": patches}}},
    }
    return {**trainjob, "spec": {**trainjob["spec"], "runtimePatches": [patch]}}


def row_of(trainjob: Object, now: datetime) -> Row:
    """What there is to say of a TrainJob as the API server has it."""
    metadata, spec, status = trainjob["metadata"], trainjob["spec"], trainjob.get("status", {})
    state = status.get("state", "")
    jobs = status.get("jobsStatus") or []
    began = _instant(metadata["creationTimestamp"])
    ended = status.get("completionTime") if state in ENDS else None
    return Row(
        metadata["name"],
        spec["runtimeRef"]["name"],
        state,
        status.get("nodes") or spec.get("trainer", {}).get("numNodes") or 1,
        _pods_of(jobs),
        _note_of(status),
        ((_instant(ended) if ended else now) - began).total_seconds(),
    )


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _pods_of(jobs: list[Object]) -> str:
    words = []
    for word in ("active", "succeeded", "failed"):
        names = [each["name"] for each in jobs if each.get(word)]
        if names:
            words.append(f"{word}: {', '.join(names)}")
    return "; ".join(words)


def _note_of(status: Object) -> str:
    """The reason of a failure, or of objects that cannot be made."""
    failure = status.get("firstFailure")
    if failure:
        return f"{failure.get('reason', '')} in {failure.get('pod', '')}"
    for condition in status.get("conditions") or []:
        is_bad = (condition["type"], condition["status"]) in {("Failed", "True"), ("ResourcesReady", "False")}
        if is_bad:
            return f"{condition['reason']}: {condition['message']}"
    return ""
