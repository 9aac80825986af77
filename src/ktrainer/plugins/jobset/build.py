"""What is written of a JobSet, given the one that is there.

A JobSet whose pods run, or are still stopping, cannot change its pod templates. Of such a one only the labels,
annotations, `suspend` and the counts of an elastic job are changed, by a patch; otherwise all of it is applied. What
may be refused, the counts, never goes together with what must not be.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ktrainer.api.resources import JOBSETS
from ktrainer.framework.component import Component, Write, new_object
from ktrainer.framework.nodes import node_bounds_of
from ktrainer.kube.jsonvalue import are_same
from ktrainer.kube.patches import merge_diff
from ktrainer.plugins.jobset.difference import differences, told
from ktrainer.plugins.jobset.held import fallback_of, holds_pods, refusal_told

if TYPE_CHECKING:
    from ktrainer.api.trainjob import TrainJob
    from ktrainer.framework.info import Info
    from ktrainer.kube.jsonvalue import JsonObject

WAITS: Final = "these changes wait until the last pod of the JobSet has stopped:"
"""How we begin to tell of changes that wait."""


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
    """How to get from the JobSet that is there to the one that is wanted.

    What is not written, though it is wanted, is noted in `info`.
    """
    if present is None:
        return [Component(JOBSETS, wanted)]
    if not holds_pods(present):
        # What one that goes refuses is told, and no matter once it is gone.
        goes = "deletionTimestamp" in present["metadata"]
        return [Component(JOBSETS, wanted, fallback=None if goes else partial(fallback_of, wanted))]
    changes = _changes(info, wanted, present)
    _note_lacks(info, trainjob, wanted["spec"], present["spec"] | changes.get("spec", {}))
    if not changes:
        return []
    return [_patch_of(present, changes)]


def build_suspension(present: JsonObject) -> Component:
    """The change that suspends a JobSet, for where nothing else can be said of it."""
    return _patch_of(present, {"spec": {"suspend": True}})


def is_suspension(component: Component) -> bool:
    """Whether a component stops the pods of a JobSet."""
    is_patch = component.resource == JOBSETS and component.write is Write.PATCH
    return is_patch and bool(component.body.get("spec", {}).get("suspend"))


def _patch_of(present: JsonObject, changes: JsonObject) -> Component:
    metadata = {field: present["metadata"][field] for field in ("name", "namespace")}
    # A list is replaced as a whole: that must not undo what somebody else has changed in the meantime.
    metadata["resourceVersion"] = present["metadata"].get("resourceVersion", "")
    body = {
        "apiVersion": JOBSETS.api_version,
        "kind": JOBSETS.kind,
        **changes,
        "metadata": {**metadata, **changes.get("metadata", {})},
    }
    return Component(JOBSETS, body, Write.PATCH)


def _changes(info: Info, wanted: JsonObject, present: JsonObject) -> JsonObject:
    changes: JsonObject = {}
    for field in ("labels", "annotations"):
        before = present["metadata"].get(field) or {}
        # What others have put there stays.
        if difference := merge_diff(before, {**before, **wanted["metadata"].get(field, {})}):
            changes.setdefault("metadata", {})[field] = difference
    is_held, shall_be_held = present["spec"].get("suspend", False), wanted["spec"]["suspend"]
    # The other way round waits until the last pod has stopped: changes of the pod templates may wait for that, too.
    if shall_be_held and not is_held:
        return {**changes, "spec": {"suspend": True}}
    if changes or is_held or not node_bounds_of(info.ml_policy):
        return changes
    jobs = _rescaled(info, present["spec"])
    return {"spec": {"replicatedJobs": jobs}} if jobs is not None else {}


def _note_lacks(info: Info, trainjob: TrainJob, wanted: JsonObject, present: JsonObject) -> None:
    """Note what a JobSet with pods will not be told of now."""
    if not present.get("suspend"):
        # To find other pods running than are wanted is no news; that they were asked to change, and did not, is.
        before = refusal_told(trainjob.status)
        info.refused = before if before and any(differences(present, wanted)) else ""
    elif lacking := told(differences(present, wanted)):
        info.waits_for = f"{WAITS} {lacking}"


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
