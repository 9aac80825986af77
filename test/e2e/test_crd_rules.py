"""What our CRDs refuse by themselves, without any webhook: every limit, and every rule of CEL, from both sides."""

from collections.abc import Callable
from typing import Any

import pytest

from clusters.api import Api, Object, Refused
from ktrainer.api.resources import TRAINING_RUNTIMES, TRAINJOBS
from ktrainer.kube.identity import Resource
from support.apiobjects import Case, jobset, patch, replicated_job, trainjob
from support.runtimecases import RUNTIME_CASES
from support.trainjobcases import TRAINJOB_CASES

pytestmark = pytest.mark.usefixtures("crds")

TRIED = "dryRun=All&fieldValidation=Strict"


def refused_paths(send: Callable[[], Object]) -> set[str]:
    """The paths of the fields that the API server names in its refusal; empty where it accepts."""
    try:
        send()
    except Refused as refusal:
        if refusal.code != 422:
            raise
        causes = refusal.status["details"]["causes"]
        # The root of an object is <nil>, and the check of the scale subresource begins with a dot.
        return {cause.get("field", "").replace("<nil>", "").removeprefix(".") for cause in causes}
    return set()


@pytest.mark.parametrize("case", [*TRAINJOB_CASES, *RUNTIME_CASES], ids=str)
def test_the_api_server_should_judge_a_new_object_as_the_models_do(admin: Api, case: Case) -> None:
    path = case.resource.path("default" if case.resource.namespaced else "")
    refused = refused_paths(lambda: admin.create(f"{path}?{TRIED}", case.item))
    assert (case.refused in refused) if case.refused is not None else not refused


POD = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template.spec"


def patched(**pod: Any) -> Object:
    return trainjob(runtimePatches=[patch(**pod)])


def dependent(status: str) -> Object:
    return jobset(
        replicatedJobs=[replicated_job(), replicated_job("late", dependsOn=[{"name": "node", "status": status}])]
    )


ONE, OTHER = patch("acme.io/one"), patch("acme.io/other")

ALLOWED: dict[str, tuple[Object, Object]] = {
    "numNodes changes": (trainjob(trainer={"numNodes": 1}), trainjob(trainer={"numNodes": 2})),
    "numNodes is set": (trainjob(trainer={"image": "a"}), trainjob(trainer={"image": "a", "numNodes": 2})),
    "numNodes is removed": (trainjob(trainer={"image": "a", "numNodes": 2}), trainjob(trainer={"image": "a"})),
    "the trainer is set": (trainjob(), trainjob(trainer={"image": "a"})),
    "the trainer is removed": (trainjob(trainer={"image": "a"}), trainjob()),
    "the initializer is set": (trainjob(), trainjob(initializer={"model": {"storageUri": "hf://a/b"}})),
    "the deadline is set": (trainjob(), trainjob(activeDeadlineSeconds=5)),
    "the time to live changes": (trainjob(ttlSecondsAfterFinished=1), trainjob(ttlSecondsAfterFinished=2)),
    "the job is suspended": (trainjob(), trainjob(suspend=True)),
    "the labels change": (trainjob(labels={"a": "1"}), trainjob(labels={"a": "2"}, annotations={"b": "2"})),
    "an override changes": (
        trainjob(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"volumes": [{"name": "a"}]}}]),
        trainjob(podTemplateOverrides=[{"targetJobs": [{"name": "node"}], "spec": {"volumes": [{"name": "b"}]}}]),
    ),
    "a patch comes": (trainjob(runtimePatches=[ONE]), trainjob(runtimePatches=[OTHER, ONE])),
    "a patch goes": (trainjob(runtimePatches=[ONE, OTHER]), trainjob(runtimePatches=[OTHER])),
    "a patch's node selector changes": (patched(nodeSelector={"a": "1"}), patched(nodeSelector={"a": "2"})),
    "a patch's tolerations change": (patched(tolerations=[{"key": "a"}]), patched(tolerations=[{"key": "b"}])),
    "a patch's gates change": (patched(schedulingGates=[{"name": "a"}]), patched(schedulingGates=[])),
    "a patch's affinity changes": (patched(affinity={"nodeAffinity": {}}), patched(affinity={"podAffinity": {}})),
    "a patch gets volumes": (patched(), patched(volumes=[{"name": "a"}])),
    "a runtime's jobs change": (jobset(), jobset(replicatedJobs=[replicated_job(replicas=2), replicated_job("more")])),
    "a runtime gets a network": (jobset(), jobset(network={"subdomain": "a"})),
}

REFUSED: dict[str, tuple[str, Object, Object]] = {
    "the runtime changes": ("spec.runtimeRef", trainjob(), trainjob(runtimeRef={"name": "other"})),
    "the kind of the runtime changes": (
        "spec.runtimeRef",
        trainjob(),
        trainjob(runtimeRef={"name": "torch", "kind": "TrainingRuntime"}),
    ),
    "the initializer changes": (
        "spec.initializer",
        trainjob(initializer={"model": {"storageUri": "hf://a/b"}}),
        trainjob(initializer={"model": {"storageUri": "hf://a/c"}}),
    ),
    "the deadline changes": (
        "spec.activeDeadlineSeconds",
        trainjob(activeDeadlineSeconds=5),
        trainjob(activeDeadlineSeconds=6),
    ),
    "the manager changes": ("spec.managedBy", trainjob(), trainjob(managedBy="kueue.x-k8s.io/multikueue")),
    **{
        f"the trainer's {field} {what}": ("spec.trainer", trainjob(trainer=before), trainjob(trainer=after))
        for field, one, other in (
            ("image", "a", "b"),
            ("command", ["a"], ["b"]),
            ("args", ["a"], ["a", "b"]),
            ("env", [{"name": "A", "value": "1"}], [{"name": "A", "value": "2"}]),
            ("numProcPerNode", 1, "auto"),
            ("resourcesPerNode", {"limits": {"cpu": 1}}, {"limits": {"cpu": 2}}),
        )
        for what, before, after in (
            ("changes", {field: one}, {field: other}),
            ("is set", {"numNodes": 1}, {"numNodes": 2, field: one}),
            ("is removed", {"numNodes": 1, field: one}, {"numNodes": 1}),
        )
    },
    **{
        f"a patch's {field} changes": (f"{POD}.{field}", patched(**{field: before}), patched(**{field: after}))
        for field, before, after in (
            ("containers", [{"name": "a"}], [{"name": "a", "env": [{"name": "A"}]}]),
            ("initContainers", [{"name": "a"}], [{"name": "b"}]),
            ("imagePullSecrets", [{"name": "a"}], [{"name": "b"}]),
            ("securityContext", {"runAsUser": 1}, {"runAsUser": 2}),
            ("serviceAccountName", "a", "b"),
            ("terminationGracePeriodSeconds", 1, 2),
            ("volumes", [{"name": "a"}], [{"name": "a", "emptyDir": {}}]),
        )
    },
    **{
        f"a runtime's {field} changes": (
            f"spec.template.spec.{field}",
            jobset(**{field: before}),
            jobset(**{field: after}),
        )
        for field, before, after in (
            ("failurePolicy", {"maxRestarts": 1}, {"maxRestarts": 2}),
            ("network", {"subdomain": "a"}, {"subdomain": "b"}),
            ("startupPolicy", {"startupPolicyOrder": "InOrder"}, {"startupPolicyOrder": "AnyOrder"}),
            ("successPolicy", {"operator": "All"}, {"operator": "Any"}),
            ("volumeClaimPolicies", [{}], [{}, {}]),
        )
    },
    "a runtime's dependency changes": (
        "spec.template.spec.replicatedJobs[1].dependsOn",
        dependent("Ready"),
        dependent("Complete"),
    ),
}


def resource_of(item: Object) -> Resource:
    return TRAINJOBS if item["kind"] == "TrainJob" else TRAINING_RUNTIMES


def update(admin: Api, namespace: str, before: Object, after: Object) -> set[str]:
    resource = resource_of(before)
    made = admin.create(resource.path(namespace), before)
    path = resource.path(namespace, made["metadata"]["name"])
    return refused_paths(lambda: admin.request("PUT", f"{path}?{TRIED}", {**made, "spec": after["spec"]}))


@pytest.mark.parametrize("change", ALLOWED)
def test_an_update_should_be_accepted_when(admin: Api, namespace: str, change: str) -> None:
    assert not update(admin, namespace, *ALLOWED[change])


@pytest.mark.parametrize("change", REFUSED)
def test_an_update_should_be_refused_when(admin: Api, namespace: str, change: str) -> None:
    path, before, after = REFUSED[change]
    assert update(admin, namespace, before, after) == {path}


def test_a_change_of_what_is_immutable_should_be_refused_in_these_words(admin: Api, namespace: str) -> None:
    made = admin.create(TRAINJOBS.path(namespace), trainjob(trainer={"image": "a"}))
    for field, value in (("trainer", {"image": "b"}), ("runtimeRef", {"name": "b"})):
        with pytest.raises(Refused, match="field is immutable"):
            admin.merge(TRAINJOBS.path(namespace, made["metadata"]["name"]), {"spec": {field: value}})
