"""What can be made of a JobSet that is suspended and has no pods, where it refuses to become what is wanted. Pure.

Of such a one JobSet lets only those fields of the pod templates change that queues set. What has never run is deleted
and made anew: nothing is lost with it. What has run keeps its restarts and the jobs that are done, and takes what it
may; a suspension or a resume must never hang on the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ktrainer.api.trainjobstatus import ConditionType, Reason
from ktrainer.framework.component import Fallback
from ktrainer.kube.conditions import TRUE, find
from ktrainer.kube.timestamp import parse_time
from ktrainer.plugins.jobset.difference import differences, told
from ktrainer.plugins.jobset.ownership import applied_spec_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ktrainer.api.trainjobstatus import TrainJobStatus
    from ktrainer.kube.jsonvalue import JsonObject

HAS_RUN: Final = "the JobSet has run before, and keeps what it has of"
"""How we begin to tell of what a JobSet does not take."""

PROMPT_SECONDS: Final = 1
"""How soon a JobSet that was created suspended says so; what ran no longer than that has done nothing yet."""

# Parity: ValidateUpdate of JobSet 0.12.
_METADATA: Final = ("labels", "annotations")
_POD_SPEC: Final = ("nodeSelector", "tolerations", "schedulingGates")

_COUNTS: Final = ("ready", "succeeded", "failed", "active")


def holds_pods(jobset: JsonObject) -> bool:
    """Whether a JobSet has pods, or may start some."""
    jobs = (jobset.get("status") or {}).get("replicatedJobsStatus") or ()
    return not jobset["spec"].get("suspend") or any(job.get("active") for job in jobs)


def fallback_of(wanted: JsonObject, present: JsonObject, manager: str) -> Fallback | None:
    """What to do where a JobSet does not become what is wanted; none where it has pods, or goes."""
    if holds_pods(present) or "deletionTimestamp" in present["metadata"]:
        return None
    if has_never_run(present):
        return Fallback(renews=True)
    possible = _changed(present["spec"], wanted["spec"])
    lacking = list(differences(possible, wanted["spec"]))
    reason = f"{HAS_RUN} {told(iter(lacking)) or 'its spec'}"
    if any(path.endswith((".parallelism", ".completions")) for path in lacking):
        reason += "; another number of nodes it takes only where JobSet's feature gate ElasticJobSet is on"
    if not any(differences(present["spec"], possible)) and _has_metadata(present, wanted):
        return Fallback(reason=reason)
    body = {
        **wanted,
        "metadata": {**wanted["metadata"], "resourceVersion": present["metadata"].get("resourceVersion", "")},
        # No more than what is ours: nobody adds again what the server has added once, if we take it and let it go.
        "spec": _changed(applied_spec_of(present, manager), wanted["spec"]),
    }
    return Fallback(body=body, reason=reason)


def _has_metadata(present: JsonObject, wanted: JsonObject) -> bool:
    return all(
        (present["metadata"].get(field) or {}).get(key) == value
        for field in _METADATA
        for key, value in (wanted["metadata"].get(field) or {}).items()
    )


def has_never_run(jobset: JsonObject) -> bool:
    """Whether it is certain that no pod of a suspended JobSet has ever done anything."""
    metadata, status = jobset["metadata"], jobset.get("status") or {}
    jobs = status.get("replicatedJobsStatus") or ()
    if status.get("restarts") or any(job.get(count) for job in jobs for count in _COUNTS):
        return False
    # Nobody has touched its spec since it was created, hence it has been suspended all the time.
    if metadata.get("generation") == 1:
        return True
    conditions = status.get("conditions") or []
    # One that starts its jobs in order says so, and may not say that it was resumed.
    if [(each["type"], each["status"]) for each in conditions] != [("Suspended", TRUE)]:
        return False
    return _is_prompt(metadata.get("creationTimestamp"), conditions[0].get("lastTransitionTime"))


def _is_prompt(created: str | None, suspended: str | None) -> bool:
    """Whether a JobSet has been suspended since its creation, as two clocks tell it."""
    try:
        seconds = (parse_time(suspended or "") - parse_time(created or "")).total_seconds()
    except ValueError:
        return False
    return 0 <= seconds <= PROMPT_SECONDS


def _changed(spec: JsonObject, wanted: JsonObject) -> JsonObject:
    """The spec of a JobSet with all that may change as it is wanted."""
    jobs = {job["name"]: job for job in wanted.get("replicatedJobs") or ()}
    kept = spec.get("replicatedJobs") or ()
    return {
        **spec,
        "suspend": wanted["suspend"],
        "replicatedJobs": [_job(job, jobs[job["name"]]) if job["name"] in jobs else job for job in kept],
    }


def _job(present: JsonObject, wanted: JsonObject) -> JsonObject:
    # Of what is there all may be missing that others have applied over us.
    template = present.get("template") or {}
    spec = template.get("spec") or {}
    pods, wanted_pods = spec.get("template") or {}, wanted["template"]["spec"]["template"]
    changed = {
        **pods,
        "metadata": _replaced(pods.get("metadata") or {}, wanted_pods.get("metadata") or {}, _METADATA),
        "spec": _replaced(pods.get("spec") or {}, wanted_pods["spec"], _POD_SPEC),
    }
    return {**present, "template": {**template, "spec": {**spec, "template": changed}}}


def _replaced(present: JsonObject, wanted: JsonObject, fields: Iterable[str]) -> JsonObject:
    kept = {name: value for name, value in present.items() if name not in fields}
    return kept | {name: wanted[name] for name in fields if name in wanted}


def refusal_told(status: TrainJobStatus) -> str:
    """What the status of a TrainJob says that its JobSet did not take; nothing where it does not."""
    condition = find(status.conditions, ConditionType.RESOURCES_READY)
    if condition is None or condition.reason != Reason.APPLY_REFUSED or not condition.message.startswith(HAS_RUN):
        return ""
    return condition.message
