"""That a real API server takes our CRDs, and serves our kinds by them: defaults, subresources, pruning."""

from pathlib import Path
from typing import Any

import pytest

import gen_crds
from clusters.api import Api, Object, Refused
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS
from support.apiobjects import cluster_runtime, named, patch, replicated_job, runtime, trainjob

pytestmark = pytest.mark.usefixtures("crds")

STRICT = "fieldValidation=Strict"
# What kubectl can keep in the annotation of a client-side apply.
ANNOTATION_LIMIT = 262144


def create(admin: Api, namespace: str, item: Object, query: str = STRICT) -> Object:
    return admin.create(f"{TRAINJOBS.path(namespace)}?{query}", item)


def create_runtime(admin: Api, namespace: str, item: Object, query: str = STRICT) -> Object:
    return admin.create(f"{TRAINING_RUNTIMES.path(namespace)}?{query}", item)


def test_the_crds_should_be_accepted_and_served(crds: list[Object]) -> None:
    assert [crd["metadata"]["name"] for crd in crds] == [
        "clustertrainingruntimes.trainer.kubeflow.org",
        "trainingruntimes.trainer.kubeflow.org",
        "trainjobs.trainer.kubeflow.org",
    ]
    for crd in crds:
        conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
        assert conditions["Established"] == "True"
        # Says why where a schema is not structural.
        assert "NonStructuralSchema" not in conditions


def test_the_crds_should_be_small_enough_for_a_client_side_apply() -> None:
    assert all(len(Path(path).read_bytes()) < ANNOTATION_LIMIT for path in gen_crds.FOLDER.glob("*.yaml"))


def test_a_trainjob_should_get_the_defaults_of_the_schema_and_no_others(admin: Api, namespace: str) -> None:
    made = create(admin, namespace, trainjob(trainer={"image": "a"}, initializer={"model": {"secretRef": {}}}))
    assert made["spec"] == {
        "runtimeRef": {"name": "torch", "apiGroup": "trainer.kubeflow.org", "kind": "ClusterTrainingRuntime"},
        "trainer": {"image": "a"},
        "initializer": {"model": {"secretRef": {"name": ""}}},
        "suspend": False,
        "managedBy": "trainer.kubeflow.org/trainjob-controller",
    }


def test_a_runtime_should_get_the_defaults_of_the_schema_and_no_others(admin: Api, namespace: str) -> None:
    template = {"spec": {"replicatedJobs": [{"name": "node", "template": {}}]}}
    made = [
        create_runtime(admin, namespace, item, f"{STRICT}&dryRun=All")["spec"]
        for item in (
            runtime(mlPolicy={"mpi": {}}, podGroupPolicy={"coscheduling": {}}),
            runtime(mlPolicy={"torch": {}}, podGroupPolicy={"volcano": {"networkTopology": {}}}),
            runtime(mlPolicy={"flux": {}}, template=template),
        )
    ]
    assert made[0]["mlPolicy"]["mpi"] == {
        "numProcPerNode": 1,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": "/root/.ssh",
        "runLauncherAsNode": False,
    }
    assert made[0]["podGroupPolicy"] == {"coscheduling": {"scheduleTimeoutSeconds": 60}}
    assert made[1]["mlPolicy"] == {"torch": {}}
    assert made[1]["podGroupPolicy"] == {"volcano": {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}}
    assert made[2]["mlPolicy"] == {"flux": {"numProcPerNode": 1}}
    assert made[2]["template"]["spec"]["replicatedJobs"] == [
        {"name": "node", "groupName": "default", "replicas": 1, "template": {}}
    ]


def in_pod(**fields: Any) -> Object:
    job = replicated_job()
    job["template"]["spec"]["template"]["spec"] |= fields
    return runtime(template={"spec": {"replicatedJobs": [job]}})


@pytest.mark.parametrize(
    "item",
    [
        in_pod(restartPolcy="Never"),
        in_pod(containers=[{"name": "node", "image": "a", "resource": {}}]),
        in_pod(volumes=[{"name": "v", "emptyDir": {"mediun": "Memory"}}]),
        runtime(mlPolicy={"torch": {"numProcPerNodes": 1}}),
        runtime(allowedNamespaces={}),
    ],
    ids=["in a pod", "in a container", "in a volume", "in a policy", "of another kind"],
)
def test_a_field_that_does_not_exist_should_be_refused_under_strict_validation(
    admin: Api, namespace: str, item: Object
) -> None:
    with pytest.raises(Refused, match="unknown field") as refusal:
        create_runtime(admin, namespace, item)
    assert refusal.value.code == 400


def test_a_field_that_does_not_exist_should_be_pruned_otherwise(admin: Api, namespace: str) -> None:
    made = create_runtime(admin, namespace, in_pod(restartPolcy="Never", hostNetwork=True), "fieldValidation=Warn")
    (job,) = made["spec"]["template"]["spec"]["replicatedJobs"]
    pod = job["template"]["spec"]["template"]["spec"]
    assert pod["hostNetwork"] is True
    assert "restartPolcy" not in pod


def test_the_crds_should_keep_every_field_that_the_api_server_knows_in_a_job(admin: Api, crds: list[Object]) -> None:
    """The API server's own schemas are the measure: whatever a Job can hold must pass through a runtime."""
    known = admin.get("/openapi/v3/apis/batch/v1")["components"]["schemas"]
    ours = crds[1]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in ("spec", "template", "spec", "replicatedJobs"):
        ours = ours["properties"][name]
    template = ours["items"]["properties"]["template"]
    assert not list(missing(known, {"$ref": "#/components/schemas/io.k8s.api.batch.v1.JobTemplateSpec"}, template, ""))


def missing(known: Object, theirs: Object, ours: Object | None, path: str) -> Any:
    """Paths that are in their schema and not in ours, or of another type there."""
    refs = [theirs, *theirs.get("allOf", [])]
    for ref in (each["$ref"] for each in refs if "$ref" in each):
        theirs = known[ref.removeprefix("#/components/schemas/")]
    if path.endswith(".metadata"):
        return
    if ours is None or (theirs.get("type") or ours.get("type")) != ours.get("type", theirs.get("type")):
        yield path
        return
    for name, inner in theirs.get("properties", {}).items():
        yield from missing(known, inner, ours.get("properties", {}).get(name), f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(theirs.get(key), dict):
            yield from missing(known, theirs[key], ours.get(key), f"{path}[]")


def condition(type_: str) -> Object:
    return {
        "type": type_,
        "status": "True",
        "reason": "Because",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }


STATUS: Object = {
    "conditions": [condition("Running")],
    "jobsStatus": [{"name": "node", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0}],
    "trainerStatus": {
        "progressPercentage": 42,
        "estimatedRemainingSeconds": 7,
        "metrics": [{"name": "loss", "value": "0.1"}],
        "lastUpdatedTime": "2026-01-02T03:04:05Z",
    },
    "state": "Running",
    "startTime": "2026-01-02T03:04:05Z",
    "completionTime": "2026-01-02T03:04:05Z",
    "runtimeDigest": "sha256:" + "0" * 64,
    "firstFailure": {"time": "2026-01-02T03:04:05Z", "pod": "p", "exitCode": 137, "signal": 9, "reason": "OOMKilled"},
    "nodes": 3,
    "selector": "a=b",
}


def test_the_status_should_be_written_by_its_subresource_alone(admin: Api, namespace: str) -> None:
    made = create(admin, namespace, {**trainjob(), "status": STATUS})
    assert "status" not in made
    path = TRAINJOBS.path(namespace, "job", "status")
    written = admin.merge(f"{path}?{STRICT}", {"status": STATUS, "spec": {"suspend": True}})
    assert written["status"] == STATUS
    assert written["spec"]["suspend"] is False
    assert written["metadata"]["generation"] == made["metadata"]["generation"]


PROGRESS = STATUS["trainerStatus"]
FAILURE = STATUS["firstFailure"]
JOB = STATUS["jobsStatus"][0]

WRONG: dict[str, tuple[str, Object]] = {
    "nothing in it": ("status", {}),
    "nine conditions": ("status.conditions", {"conditions": [condition(f"T{number}") for number in range(9)]}),
    "a condition twice": ("status.conditions[1]", {"conditions": [condition("T"), condition("T")]}),
    **{
        f"a condition of {what}": (f"status.conditions[0].{field}", {"conditions": [condition("T") | {field: value}]})
        for what, field, value in (
            ("a bad type", "type", "no type"),
            ("too long a type", "type", "T" * 317),
            ("an unknown status", "status", "Maybe"),
            ("no reason", "reason", ""),
            ("a bad reason", "reason", "no reason"),
            ("too long a reason", "reason", "R" * 1025),
            ("too long a message", "message", "m" * 32769),
            ("no time", "lastTransitionTime", "now"),
            ("a generation below 0", "observedGeneration", -1),
        )
    },
    "an unknown state": ("status.state", {"state": "Fine"}),
    "no time of progress": ("status.trainerStatus", {"trainerStatus": {"progressPercentage": 1}}),
    **{
        f"progress of {what}": (f"status.trainerStatus.{path}", {"trainerStatus": {**PROGRESS, **fields}})
        for what, path, fields in (
            ("more than all", "progressPercentage", {"progressPercentage": 101}),
            ("less than nothing", "progressPercentage", {"progressPercentage": -1}),
            ("less than no time left", "estimatedRemainingSeconds", {"estimatedRemainingSeconds": -1}),
            ("257 metrics", "metrics", {"metrics": named(257, value="1")}),
            ("a metric without a name", "metrics[0].name", {"metrics": [{"name": "", "value": "1"}]}),
            ("too long a metric's name", "metrics[0].name", {"metrics": [{"name": "a" * 65, "value": "1"}]}),
            ("an empty metric", "metrics[0].value", {"metrics": named(1, value="")}),
            ("too long a metric", "metrics[0].value", {"metrics": named(1, value="1" * 65)}),
        )
    },
    "101 jobs": ("status.jobsStatus", {"jobsStatus": [{**JOB, **each} for each in named(101)]}),
    "a job twice": ("status.jobsStatus[1]", {"jobsStatus": [JOB, JOB]}),
    **{
        f"a job's {field} below 0": (f"status.jobsStatus[0].{field}", {"jobsStatus": [{**JOB, field: -1}]})
        for field in ("ready", "succeeded", "failed", "active", "suspended")
    },
    **{
        f"a job with {what}": ("status.jobsStatus[0].name", {"jobsStatus": [{**JOB, "name": name}]})
        for what, name in (("an empty name", ""), ("too long a name", "a" * 254))
    },
    "a job without a name": (
        "status.jobsStatus[0].name",
        {"jobsStatus": [{key: value for key, value in JOB.items() if key != "name"}]},
    ),
    "a time of progress that is none": (
        "status.trainerStatus.lastUpdatedTime",
        {"trainerStatus": {**PROGRESS, "lastUpdatedTime": "now"}},
    ),
    "a start that is no time": ("status.startTime", {"startTime": "now"}),
    "an end that is no time": ("status.completionTime", {"completionTime": "now"}),
    "a job without a count": ("status.jobsStatus[0].ready", {"jobsStatus": [{"name": "node"}]}),
    "a failure without a time": ("status.firstFailure.time", {"firstFailure": {"pod": "p"}}),
    **{
        f"too long a {field} of a failure": (
            f"status.firstFailure.{field}",
            {"firstFailure": {**FAILURE, field: "a" * (limit + 1)}},
        )
        for field, limit in (
            ("job", 253),
            ("pod", 253),
            ("node", 253),
            ("container", 253),
            ("reason", 1024),
            ("message", 2048),
        )
    },
    "too long a digest": ("status.runtimeDigest", {"runtimeDigest": "a" * 129}),
    "nodes below 0": ("status.nodes", {"nodes": -1}),
    "too long a selector": ("status.selector", {"selector": "a" * 1025}),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_status_should_be_refused_with(admin: Api, namespace: str, what: str) -> None:
    path, wrong = WRONG[what]
    made = create(admin, namespace, trainjob())
    with pytest.raises(Refused) as refusal:
        admin.request("PUT", TRAINJOBS.path(namespace, "job", "status"), {**made, "status": wrong})
    assert refusal.value.code == 422
    causes = refusal.value.status["details"]["causes"]
    assert path in {cause["field"].removeprefix(".") for cause in causes}


def test_the_scale_subresource_should_read_and_set_the_number_of_nodes(admin: Api, namespace: str) -> None:
    create(admin, namespace, trainjob(trainer={"numNodes": 2}))
    admin.merge(TRAINJOBS.path(namespace, "job", "status"), {"status": STATUS})
    path = TRAINJOBS.path(namespace, "job", "scale")
    scale = admin.get(path)
    assert (scale["spec"], scale["status"]) == ({"replicas": 2}, {"replicas": 3, "selector": "a=b"})
    admin.merge(path, {"spec": {"replicas": 4}})
    assert admin.get(TRAINJOBS.path(namespace, "job"))["spec"]["trainer"] == {"numNodes": 4}
    with pytest.raises(Refused, match="numNodes"):
        admin.merge(path, {"spec": {"replicas": 0}})


def test_a_trainjob_of_the_older_dialect_should_be_accepted(admin: Api, namespace: str) -> None:
    override = {
        "targetJobs": [{"name": "node"}],
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "nodeSelector": {"gpu": "a100"},
            "containers": [{"name": "node", "env": [{"name": "A", "value": "1"}]}],
        },
    }
    spec: Object = {
        "trainer": {"image": "a", "numNodes": 2, "numProcPerNode": "auto", "env": [{"name": "B", "value": "2"}]},
        "labels": {"a": "b"},
        "annotations": {"c": "d"},
        "podTemplateOverrides": [override],
    }
    made = create(admin, namespace, trainjob(**spec))
    assert {name: made["spec"][name] for name in spec} == spec


def test_a_trainjob_of_the_newer_dialect_should_be_accepted(admin: Api, namespace: str) -> None:
    spec: Object = {
        "trainer": {"numNodes": 2, "numProcPerNode": 8, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 8}}},
        "activeDeadlineSeconds": 3600,
        "runtimePatches": [
            patch("kueue.x-k8s.io/manager", nodeSelector={"pool": "a"}, schedulingGates=[{"name": "g"}])
        ],
    }
    made = create(admin, namespace, trainjob(**spec))
    assert {name: made["spec"][name] for name in spec} == spec


def test_a_cluster_runtime_should_be_made_without_a_namespace(admin: Api) -> None:
    made = admin.create(
        f"{CLUSTER_TRAINING_RUNTIMES.path()}?{STRICT}&dryRun=All", cluster_runtime(mlPolicy={"jax": {}})
    )
    assert made["spec"]["mlPolicy"] == {"jax": {}}
