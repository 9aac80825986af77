"""Hypothesis strategies for runtimes and TrainJobs that fit each other, for every plugin: an API server takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from ktrainer.api.labels import Ancestor
from support.domain import maybe
from support.training import container, initializer, job, runtime, trainjob_json

if TYPE_CHECKING:
    from collections.abc import Mapping

J = dict[str, Any]

FRAMEWORKS: Mapping[str, J] = {
    "none": {},
    "plain": {"mlPolicy": {"numNodes": 2}},
    "torch": {"mlPolicy": {"torch": {"numProcPerNode": "auto"}}},
    "injection": {
        "mlPolicy": {"torch": {"envInjection": {"targets": [{"jobName": "node", "containerNames": ["log"]}]}}}
    },
    "elastic": {
        "mlPolicy": {
            "torch": {
                "elasticPolicy": {
                    "minNodes": 1,
                    "maxNodes": 9,
                    "maxRestarts": 3,
                    "metrics": [
                        {
                            "type": "Resource",
                            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
                        }
                    ],
                }
            }
        }
    },
    "tune": {"mlPolicy": {"torch": {}}},
    "mpi": {"mlPolicy": {"mpi": {"numProcPerNode": 2}}},
    "mpi5": {"mlPolicy": {"mpi": {"mpiImplementation": "OpenMPI5", "sshAuthMountPath": "/home/mpi/.ssh"}}},
    "intel": {"mlPolicy": {"mpi": {"mpiImplementation": "Intel", "runLauncherAsNode": True}}},
    "jax": {"mlPolicy": {"jax": {}}},
    "xgboost": {"mlPolicy": {"xgboost": {}}},
    "flux": {"mlPolicy": {"flux": {"numProcPerNode": 2}}},
}
"""What the spec of a runtime says of each framework."""

GANGS: Mapping[str, J] = {
    "alone": {},
    "coscheduling": {"podGroupPolicy": {"coscheduling": {"scheduleTimeoutSeconds": 30}}},
    "volcano": {"podGroupPolicy": {"volcano": {"networkTopology": {"mode": "soft", "highestTierAllowed": 2}}}},
}
"""What it says of each scheduler."""

_QUANTITIES = st.sampled_from(["1", "1000m", "500m", "0.5", "1024Mi", "2Gi", 3, "0"])
_RESOURCES = maybe(
    requests=st.dictionaries(st.sampled_from(["cpu", "memory"]), _QUANTITIES, max_size=2),
    limits=st.dictionaries(st.sampled_from(["nvidia.com/gpu", "memory"]), st.sampled_from(["1", "4"]), max_size=2),
)
_ENV = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from("ABCDEF"), "value": st.sampled_from(["", "1", "$(A)"])})
    | st.just({"name": "G", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}),
    max_size=3,
    unique_by=lambda entry: str(entry["name"]),
)
_VOLUMES: st.SearchStrategy[list[J]] = st.lists(
    st.sampled_from(
        [
            {"name": "cache", "emptyDir": {"sizeLimit": "1024Mi"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "config", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
        ]
    ),
    max_size=3,
    unique_by=lambda volume: str(volume["name"]),
)
_PORTS: st.SearchStrategy[list[J]] = st.sampled_from(
    [[], [{"containerPort": 80}], [{"containerPort": 80, "name": "http"}, {"containerPort": 29500, "name": "master"}]]
)
_SCHEDULING = maybe(
    nodeSelector=st.dictionaries(st.sampled_from(["pool", "zone"]), st.sampled_from(["a", "b"]), max_size=2),
    tolerations=st.lists(st.sampled_from([{"key": "gpu", "operator": "Exists"}, {"operator": "Exists"}]), max_size=2),
    schedulingGates=st.lists(st.sampled_from([{"name": "a.io/g"}, {"name": "b.io/g"}]), max_size=2, unique_by=str),
)
_LABELS = st.dictionaries(st.sampled_from(["l1", "l2"]), st.sampled_from(["a", "b"]), max_size=2)
_NODES = st.sampled_from([1, 2, 5])


@st.composite
def runtimes(draw: st.DrawFn, framework: str, gang: str) -> J:
    """Runtimes for a framework and a scheduler."""
    command = ["tune", "run", "output_dir=/o"] if framework == "tune" else ["train"]
    node = container(
        "node", resources=draw(_RESOURCES), env=draw(_ENV), ports=draw(_PORTS), command=command, args=["--fast"]
    )
    volumes = draw(_VOLUMES)
    node["volumeMounts"] = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    log = container("log", env=draw(_ENV))
    pod = {"volumes": volumes, "initContainers": [container("prepare")], **draw(_SCHEDULING)}
    jobs = [initializer(Ancestor.DATASET_INITIALIZER), initializer(Ancestor.MODEL_INITIALIZER)]
    for each in jobs:
        each["template"]["spec"]["template"]["spec"]["volumes"] = [{"name": "initializer", "emptyDir": {}}]
    waits = draw(st.sampled_from([{}, {"dependsOn": [{"name": each["name"], "status": "Complete"} for each in jobs]}]))
    if framework in ("mpi", "mpi5", "intel"):
        jobs.append(job("launcher", "trainer", node, pod=pod, **waits))
        jobs.append(job("node", None, container("node", resources=draw(_RESOURCES))))
    else:
        jobs.append(job("node", "trainer", node, log, pod=pod, **waits))
    # No controller touches such a JobSet: what changes there was changed by whoever applies it.
    template = {"managedBy": "acme.io/nobody", **draw(maybe(network=st.just({"subdomain": "sub"})))}
    name = "torchtune-llama3.2-1b" if framework == "tune" else "rt"
    made = runtime(*jobs, name=name, template=template, **FRAMEWORKS[framework], **GANGS[gang])
    made["spec"]["template"]["metadata"] = {"labels": draw(_LABELS), "annotations": draw(_LABELS)}
    return made


@st.composite
def trainjobs(draw: st.DrawFn, framework: str) -> J:
    """TrainJobs that fit the runtimes of a framework."""
    spec = draw(
        maybe(
            suspend=st.booleans(),
            initializer=maybe(
                dataset=maybe(storageUri=st.just("hf://a/b"), env=_ENV, secretRef=st.just({"name": "s"})),
                model=maybe(storageUri=st.just("s3://a/b")),
            ),
        )
    )
    trainer = draw(
        maybe(image=st.just("mine"), args=st.just(["a", "b"]), env=_ENV, resourcesPerNode=_RESOURCES, numNodes=_NODES)
    )
    if framework == "tune":
        trainer |= {"command": ["tune", "run"], "numNodes": 1, "numProcPerNode": draw(st.sampled_from([1, 2]))}
    name = "torchtune-llama3.2-1b" if framework == "tune" else "rt"
    return trainjob_json(runtime=name, **spec, trainer=trainer, **draw(changes()))


@st.composite
def changes(draw: st.DrawFn) -> J:
    """What may change in a TrainJob that is suspended: labels, annotations, and where its pods go."""
    pods = {"metadata": {"labels": draw(_LABELS)}, "spec": draw(_SCHEDULING)}
    patch = {"name": "node", "template": {"spec": {"template": pods}}}
    return {
        "labels": draw(_LABELS),
        "annotations": draw(_LABELS),
        "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": draw(_SCHEDULING)}],
        "runtimePatches": [
            {"manager": "a.io/b", "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": [patch]}}}}
        ],
    }
