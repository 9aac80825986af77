"""What is written of a JobSet, given the one that is there.

A JobSet whose pods run, or are still stopping, cannot change its pod templates. Of such a one only the labels,
annotations, `suspend` and the counts of an elastic job are changed, by a patch; otherwise all of it is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ktrainer.api.resources import JOBSETS
from ktrainer.framework.component import Component, Write, new_object
from ktrainer.framework.nodes import node_bounds_of
from ktrainer.kube.jsonvalue import are_same
from ktrainer.kube.patches import merge_diff

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.info import Info
    from ktrainer.kube.jsonvalue import JsonObject


def build_jobset(info: Info, trainjob: TrainJob) -> JsonObject:
    """All that we want of a JobSet."""
    jobset = new_object(JOBSETS, trainjob, trainjob.metadata.name)
    metadata = jobset["metadata"]
    metadata["labels"] = {**info.labels, **metadata["labels"]}
    if info.annotations:
        metadata["annotations"] = dict(info.annotations)
    info.template["suspend"] = trainjob.spec.suspend
    jobset["spec"] = info.template
    return jobset


def decide_write(info: Info, trainjob: TrainJob, wanted: JsonObject, present: JsonObject | None) -> list[Component]:
    """How to get from the JobSet that is there to the one that is wanted."""
    if present is None or not _holds_pods(present):
        return [Component(JOBSETS, wanted)]
    changes = _changes(info, wanted, present)
    if not changes:
        return []
    metadata = {"name": trainjob.metadata.name, "namespace": trainjob.metadata.namespace}
    # A list is replaced as a whole: that must not undo what somebody else has changed in the meantime.
    metadata["resourceVersion"] = present["metadata"].get("resourceVersion", "")
    body = {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        **changes,
        "metadata": {**metadata, **changes.get("metadata", {})},
    }
    return [Component(JOBSETS, body, Write.PATCH)]


def _holds_pods(jobset: JsonObject) -> bool:
    jobs = (jobset.get("status") or {}).get("replicatedJobsStatus") or ()
    return not jobset["spec"].get("suspend") or any(job.get("active") for job in jobs)


def _changes(info: Info, wanted: JsonObject, present: JsonObject) -> JsonObject:
    changes: JsonObject = {}
    for field in ("labels", "annotations"):
        before = present["metadata"].get(field) or {}
        # What others have put there stays.
        if difference := merge_diff(before, {**before, **wanted["metadata"].get(field, {})}):
            changes.setdefault("metadata", {})[field] = difference
    spec: JsonObject = {}
    # The other way round waits until the last pod has stopped: changes of the pod templates may wait for that, too.
    if wanted["spec"]["suspend"] and not present["spec"].get("suspend"):
        spec["suspend"] = True
    if node_bounds_of(info.ml_policy) and (jobs := _rescaled(info, present["spec"])) is not None:
        spec["replicatedJobs"] = jobs
    return {**changes, "spec": spec} if spec else changes


def _rescaled(info: Info, spec: JsonObject) -> list[JsonObject] | None:
    """The replicated jobs with the count of the sized one renewed; none where it is what it should be."""
    jobs: list[JsonObject] = spec.get("replicatedJobs") or []
    counts = {info.sized.name: info.sized.count} if info.sized else {}
    rescaled = [_with_count(job, counts[job["name"]]) if job["name"] in counts else job for job in jobs]
    return None if are_same(jobs, rescaled) else rescaled


def _with_count(job: JsonObject, count: int) -> JsonObject:
    template = job["template"]
    return {
        **job,
        "template": {**template, "spec": {**template["spec"], "parallelism": count, "completions": count}},
    }
