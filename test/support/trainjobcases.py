"""Cases of TrainJobs: every limit and rule of their schema, from both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ktrainer.api.resources import API_VERSION, TRAINJOBS
from support.apiobjects import Case, Object, named, patch, trainjob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _job(name: str, refused: str | None = None, /, *, deep: bool = False, **spec: Any) -> Case:
    return Case(name, TRAINJOBS, trainjob(**spec), refused, deep)


def _trainer(name: str, refused: str | None = None, /, *, deep: bool = False, **fields: Any) -> Case:
    return Case(name, TRAINJOBS, trainjob(trainer=fields), f"spec.trainer.{refused}" if refused else None, deep)


def _deep(case: Case) -> Case:
    """The same case, which only a schema judges."""
    return replace(case, by_schema_only=True)


def _patched(name: str, refused: str | None = None, /, **pod: Any) -> Case:
    job = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0]"
    path = f"{job}.template.spec.template.spec.{refused}" if refused else None
    return Case(name, TRAINJOBS, trainjob(runtimePatches=[patch(**pod)]), path)


NAMES = [
    Case("with a name of letters, digits and hyphens", TRAINJOBS, trainjob("a-1-b")),
    Case("with a name that begins with a digit", TRAINJOBS, trainjob("1a"), ""),
    Case("with a name that has a dot", TRAINJOBS, trainjob("a.b"), ""),
    Case("with a name of 63 characters", TRAINJOBS, trainjob("a" * 63)),
    Case("with a name of 64 characters", TRAINJOBS, trainjob("a" * 64), ""),
]

RUNTIME_REFS = [
    Case(
        "without a runtimeRef",
        TRAINJOBS,
        {"apiVersion": API_VERSION, "kind": "TrainJob", "metadata": {"name": "job"}, "spec": {"suspend": True}},
        "spec.runtimeRef",
    ),
    _job("with a runtimeRef without a name", "spec.runtimeRef.name", runtimeRef={"kind": "TrainingRuntime"}),
    _job("with an empty runtime name", "spec.runtimeRef.name", runtimeRef={"name": ""}),
    _job("with the longest runtime name", runtimeRef={"name": "a" * 253}),
    _job("with too long a runtime name", "spec.runtimeRef.name", runtimeRef={"name": "a" * 254}),
    _job("with the longest group", runtimeRef={"name": "a", "apiGroup": "a" * 253}),
    _job("with too long a group", "spec.runtimeRef.apiGroup", runtimeRef={"name": "a", "apiGroup": "a" * 254}),
    _job("with the longest kind", runtimeRef={"name": "a", "kind": "a" * 253}),
    _job("with too long a kind", "spec.runtimeRef.kind", runtimeRef={"name": "a", "kind": "a" * 254}),
]

_DATASET = "spec.initializer.dataset"
INITIALIZERS = [
    _job("with an empty storageUri", initializer={"dataset": {"storageUri": ""}}),
    _job(
        "with a storageUri",
        initializer={"model": {"storageUri": "hf://org/name"}, "dataset": {"storageUri": "s3+x://b"}},
    ),
    _job(
        "with a storageUri without a scheme", f"{_DATASET}.storageUri", initializer={"dataset": {"storageUri": "://b"}}
    ),
    _job(
        "with a storageUri without a place", f"{_DATASET}.storageUri", initializer={"dataset": {"storageUri": "s3://"}}
    ),
    _job(
        "with a model that is no URI", "spec.initializer.model.storageUri", initializer={"model": {"storageUri": "x"}}
    ),
    _job("with the longest storageUri", initializer={"dataset": {"storageUri": "s3://" + "a" * 2043}}),
    _job(
        "with too long a storageUri",
        f"{_DATASET}.storageUri",
        initializer={"dataset": {"storageUri": "s3://" + "a" * 2044}},
    ),
    _job("with 128 variables for an initializer", initializer={"dataset": {"env": named(128, value="x")}}),
    _job("with 129 variables for an initializer", f"{_DATASET}.env", initializer={"dataset": {"env": named(129)}}),
    _job(
        "with a variable twice in an initializer",
        f"{_DATASET}.env[1]",
        initializer={"dataset": {"env": [{"name": "A"}, {"name": "A"}]}},
    ),
    _job(
        "with a variable twice for the model",
        "spec.initializer.model.env[1]",
        initializer={"model": {"env": [{"name": "A"}, {"name": "A"}]}},
    ),
    *(
        _job(
            f"with a variable without a name for the {part}",
            f"spec.initializer.{part}.env[0].name",
            deep=True,
            initializer={part: {"env": [{"value": "1"}]}},
        )
        for part in ("dataset", "model")
    ),
    _job("with 129 variables for the model", "spec.initializer.model.env", initializer={"model": {"env": named(129)}}),
    _job("with a secretRef", initializer={"dataset": {"secretRef": {"name": "token"}}}),
    _job("with a secretRef without a name", initializer={"dataset": {"secretRef": {}}}),
]

TRAINERS = [
    _trainer("with the longest image", image="a" * 500),
    _trainer("with too long an image", "image", image="a" * 501),
    _trainer("with an image that is a number", "image", image=1),
    _trainer("with 128 words of a command", command=["a"] * 128),
    _trainer("with 129 words of a command", "command", command=["a"] * 129),
    _trainer("with the longest word of a command", command=["a" * 1048576]),
    _trainer("with too long a word of a command", "command[0]", command=["a" * 1048577]),
    _trainer("with 128 args", args=["a"] * 128),
    _trainer("with 129 args", "args", args=["a"] * 129),
    _trainer("with the longest arg", args=["a" * 1048576]),
    _trainer("with too long an arg", "args[0]", args=["a" * 1048577]),
    _trainer("with an empty command", command=[], args=[]),
    _trainer("with 128 variables", env=named(128)),
    _trainer("with 129 variables", "env", env=named(129)),
    _trainer("with a variable twice", "env[1]", env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
    _trainer("with a variable without a name", "env[0].name", deep=True, env=[{"value": "1"}]),
    _trainer("with one node", numNodes=1),
    _trainer("with no node", "numNodes", numNodes=0),
    _trainer("with half a node", "numNodes", numNodes=0.5),
    _trainer("with more nodes than a number of 32 bits holds", "numNodes", numNodes=2**31),
    _trainer("with a number of processes", numProcPerNode=8),
    _trainer("with no process", numProcPerNode=0),
    _trainer("with processes by the accelerators", numProcPerNode="gpu"),
    _trainer("with processes by the processors", numProcPerNode="cpu"),
    _trainer("with processes by what there is", numProcPerNode="auto"),
    _trainer("with processes by another word", "numProcPerNode", numProcPerNode="all"),
    _trainer("with processes by a number in quotes", "numProcPerNode", numProcPerNode="8"),
    _trainer("with processes by yes", "numProcPerNode", numProcPerNode=True),
    _trainer("with resources", resourcesPerNode={"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"a.b/gpu": "1"}}),
    _trainer(
        "with a bad quantity", "resourcesPerNode.requests.cpu", deep=True, resourcesPerNode={"requests": {"cpu": "x"}}
    ),
]

SPECS = [
    _job("with the shortest deadline", activeDeadlineSeconds=1),
    _job("with a deadline of no time", "spec.activeDeadlineSeconds", activeDeadlineSeconds=0),
    _job("deleted at its end", ttlSecondsAfterFinished=0),
    _job("deleted before its end", "spec.ttlSecondsAfterFinished", ttlSecondsAfterFinished=-1),
    _job("managed by us", managedBy="trainer.kubeflow.org/trainjob-controller"),
    _job("managed by Kueue", managedBy="kueue.x-k8s.io/multikueue"),
    _job("managed by somebody else", "spec.managedBy", managedBy="acme.io/controller"),
    _job("suspended", suspend=True),
    _job("suspended by a word", "spec.suspend", suspend="yes"),
    _job("with labels and annotations", labels={"a": "b"}, annotations={"a": "b"}),
    _job("with a label that is a number", "spec.labels.a", labels={"a": 1}),
]


def _overridden(name: str, refused: str, /, **pod: Any) -> Case:
    override = {"targetJobs": [{"name": "node"}], "spec": pod}
    path = f"spec.podTemplateOverrides[0].spec.{refused}"
    return Case(name, TRAINJOBS, trainjob(podTemplateOverrides=[override]), path)


def _twice(what: str, field: str, case: Callable[..., Case]) -> Iterator[Case]:
    """A variable and a mount twice, and a variable without a name, in a container."""
    variables: Object = {"name": "a", "env": [{"name": "A"}, {"name": "A"}]}
    nameless: Object = {"name": "a", "env": [{"value": "1"}]}
    mounts: Object = {"name": "a", "volumeMounts": [{"name": "a", "mountPath": "/a"}] * 2}
    yield case(f"{what} a variable twice in {field}", f"{field}[0].env[1]", **{field: [variables]})
    yield _deep(case(f"{what} a variable without a name in {field}", f"{field}[0].env[0].name", **{field: [nameless]}))
    yield _deep(case(f"{what} a mount twice in {field}", f"{field}[0].volumeMounts[1]", **{field: [mounts]}))


OVERRIDES = [
    _job(
        "with an override of everything",
        podTemplateOverrides=[
            {
                "targetJobs": [{"name": "node"}],
                "metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
                "spec": {
                    "serviceAccountName": "robot",
                    "nodeSelector": {"a": "b"},
                    "affinity": {"nodeAffinity": {}},
                    "tolerations": [{"key": "a", "operator": "Exists"}],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "initContainers": [{"name": "i", "env": [{"name": "A", "value": "1"}]}],
                    "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
                    "schedulingGates": [{"name": "acme.io/gate"}],
                    "imagePullSecrets": [{"name": "s"}],
                },
            },
            {"targetJobs": [{"name": "node"}]},
        ],
    ),
    _job("with an override for no job", podTemplateOverrides=[{"targetJobs": []}]),
    _job(
        "with an override without jobs", "spec.podTemplateOverrides[0].targetJobs", podTemplateOverrides=[{"spec": {}}]
    ),
    _job(
        "with an override for a job without a name",
        "spec.podTemplateOverrides[0].targetJobs[0].name",
        podTemplateOverrides=[{"targetJobs": [{"name": ""}]}],
    ),
    _job(
        "with an override for a container without a name",
        "spec.podTemplateOverrides[0].spec.containers[0].name",
        podTemplateOverrides=[{"targetJobs": [], "spec": {"containers": [{"name": ""}]}}],
    ),
    *(
        _job(
            f"with an override of one of the {field} twice",
            f"spec.podTemplateOverrides[0].spec.{field}[1]",
            podTemplateOverrides=[{"targetJobs": [], "spec": {field: [{"name": "a"}, {"name": "a"}]}}],
        )
        for field in ("containers", "initContainers", "volumes", "schedulingGates", "imagePullSecrets")
    ),
    _deep(_overridden("with an override of a gate without a name", "schedulingGates[0].name", schedulingGates=[{}])),
    *(
        case
        for field in ("containers", "initContainers")
        for case in (
            _overridden(f"with an override of {field} without a name", f"{field}[0].name", **{field: [{}]}),
            *_twice("with an override of", field, _overridden),
        )
    ),
]

_REPLICATED = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs"


def _of_jobs(jobs: list[Object]) -> list[Object]:
    return [{"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}]


_LABELLED = {"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["a/b"]}}
_JOB = {"name": "node", "template": {**_LABELLED, "spec": {"template": _LABELLED}}}
_METADATA = {
    "manager": "a.io/b",
    "trainingRuntimeSpec": {"template": {**_LABELLED, "spec": {"replicatedJobs": [_JOB]}}},
}

PATCHES = [
    _job("with 16 patches", runtimePatches=[patch(f"acme.io/{number}") for number in range(16)]),
    _job("with 17 patches", "spec.runtimePatches", runtimePatches=[patch(f"acme.io/{number}") for number in range(17)]),
    _job("with two patches of one manager", "spec.runtimePatches[1]", runtimePatches=[patch(), patch()]),
    _job("with a patch of nobody", "spec.runtimePatches[0].manager", runtimePatches=[patch("")]),
    _job("with a patch without a manager", "spec.runtimePatches[0].manager", runtimePatches=[{}]),
    _job("with the longest manager", runtimePatches=[patch("a" * 253)]),
    _job("with too long a manager", "spec.runtimePatches[0].manager", runtimePatches=[patch("a" * 254)]),
    _job("with the time of a patch", runtimePatches=[{**patch(), "time": "2026-01-02T03:04:05Z"}]),
    _job("with a bad time of a patch", "spec.runtimePatches[0].time", runtimePatches=[{**patch(), "time": "today"}]),
    _job("with patches of 100 jobs", runtimePatches=_of_jobs(named(100))),
    _job("with patches of 101 jobs", _REPLICATED, runtimePatches=_of_jobs(named(101))),
    _job("with a job patched twice", f"{_REPLICATED}[1]", runtimePatches=_of_jobs([{"name": "a"}, {"name": "a"}])),
    _job("with a patch of a job without a name", f"{_REPLICATED}[0].name", runtimePatches=_of_jobs([{"name": ""}])),
    _job(
        "with a patch of too long a job name", f"{_REPLICATED}[0].name", runtimePatches=_of_jobs([{"name": "a" * 254}])
    ),
    _job("with a patch of metadata", runtimePatches=[_METADATA]),
    _patched("with the longest service account", serviceAccountName="a" * 253),
    _patched("with too long a service account", "serviceAccountName", serviceAccountName="a" * 254),
    _patched("without grace", terminationGracePeriodSeconds=0),
    _patched("with less than no grace", "terminationGracePeriodSeconds", terminationGracePeriodSeconds=-1),
    _patched("with 128 volumes", volumes=named(128, emptyDir={})),
    _patched("with 129 volumes", "volumes", volumes=named(129)),
    _patched("with a volume twice", "volumes[1]", volumes=[{"name": "a"}, {"name": "a"}]),
    _patched("with 64 pull secrets", imagePullSecrets=named(64)),
    _patched("with 65 pull secrets", "imagePullSecrets", imagePullSecrets=named(65)),
    _patched("with 16 gates", schedulingGates=named(16)),
    _patched("with 17 gates", "schedulingGates", schedulingGates=named(17)),
    _patched("with 128 tolerations", tolerations=[{"key": "a"}] * 128),
    _patched("with 129 tolerations", "tolerations", tolerations=[{"key": "a"}] * 129),
    _patched(
        "with security contexts", securityContext={"runAsUser": 1000}, containers=[{"name": "a", "securityContext": {}}]
    ),
    _patched("with a node selector and affinity", nodeSelector={"a": "b"}, affinity={"podAffinity": {}}),
    *(
        case
        for field in ("containers", "initContainers")
        for case in (
            _patched(f"with 64 {field}", **{field: named(64)}),
            _patched(f"with 65 {field}", field, **{field: named(65)}),
            _patched(f"with one of {field} twice", f"{field}[1]", **{field: [{"name": "a"}, {"name": "a"}]}),
            _patched(f"with one of {field} without a name", f"{field}[0].name", **{field: [{"name": ""}]}),
            _patched(f"with 128 variables in {field}", **{field: [{"name": "a", "env": named(128)}]}),
            _patched(
                f"with 129 variables in {field}", f"{field}[0].env", **{field: [{"name": "a", "env": named(129)}]}
            ),
            _patched(
                f"with 129 mounts in {field}",
                f"{field}[0].volumeMounts",
                **{field: [{"name": "a", "volumeMounts": named(129, mountPath="/a")}]},
            ),
            *_twice("with", field, _patched),
        )
    ),
    _deep(_patched("with a volume without a name", "volumes[0].name", volumes=[{"emptyDir": {}}])),
    _patched("with a pull secret twice", "imagePullSecrets[1]", imagePullSecrets=[{"name": "a"}] * 2),
    _patched("with a gate twice", "schedulingGates[1]", schedulingGates=[{"name": "a"}] * 2),
    _deep(_patched("with a gate without a name", "schedulingGates[0].name", schedulingGates=[{}])),
]

TRAINJOB_CASES = [*NAMES, *RUNTIME_REFS, *INITIALIZERS, *TRAINERS, *SPECS, *OVERRIDES, *PATCHES]
