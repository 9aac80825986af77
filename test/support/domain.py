"""Hypothesis strategies for TrainJobs and runtimes, right and wrong ones, as JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from ktrainer.api.labels import ANCESTOR
from support.jsonvalues import VALUES

J = dict[str, Any]

NAMES = st.sampled_from(["node", "launcher", "side", "dataset-initializer", "model-initializer", "initializer", "x"])
# What is wrong is rare, so that most inputs have few things wrong with them.
QUANTITIES: st.SearchStrategy[Any] = st.sampled_from(["1", "500m", "1024Mi", "0", 2, 0.5] * 9 + ["bad", None, [], -1])
ENV_NAMES = [*"ABCDEF" * 5, "PET_NNODES", "JAX_PROCESS_ID", "DMLC_TASK_ID", "OMPI_MCA_plm_rsh_args", "FLUX_VIEW_IMAGE"]


ODD: st.SearchStrategy[Any] = st.one_of(*[st.none()] * 9, VALUES)


def maybe(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[J]:
    """Objects with some of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


RESOURCE_NAMES = st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "x/GPU"])
LISTS_OF_QUANTITIES = st.dictionaries(RESOURCE_NAMES, QUANTITIES, max_size=3)
RESOURCES = maybe(limits=LISTS_OF_QUANTITIES, requests=LISTS_OF_QUANTITIES, claims=st.just([{"name": "c"}]))
SOURCES = st.sampled_from(
    [
        {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
        {"resourceFieldRef": {"resource": "limits.cpu"}},
        {"secretKeyRef": {"name": "s", "key": "k"}},
    ]
    * 9
    + [{"resourceFieldRef": {"resource": "limits.cpu", "divisor": "many"}}]
)
ENV = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(ENV_NAMES)},
        optional={"value": st.sampled_from(["", "1"]), "valueFrom": SOURCES},
    ),
    max_size=3,
    unique_by=lambda entry: str(entry["name"]),
)
MOUNTS = st.lists(
    st.fixed_dictionaries({"name": NAMES, "mountPath": st.sampled_from(["/a", "/etc/mpi", "/curve"])}),
    max_size=2,
    unique_by=lambda mount: str(mount["mountPath"]),
)
VOLUMES = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"emptyDir": maybe(sizeLimit=QUANTITIES)}),
    max_size=2,
    unique_by=lambda volume: str(volume["name"]),
)
PORTS = st.lists(
    st.fixed_dictionaries({"containerPort": st.sampled_from([1, 2, 29500])}, optional={"name": NAMES}),
    max_size=3,
    unique_by=lambda port: int(port["containerPort"]),
)
WORDS = st.lists(st.sampled_from(["tune", "run", "python", "output_dir=/o", "model.quantize_base=True"]), max_size=3)


def containers(least: int) -> st.SearchStrategy[list[J]]:
    """Containers of different names."""
    container = st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "image": st.just("img"),
            "env": ENV,
            "resources": RESOURCES,
            "volumeMounts": MOUNTS,
            "ports": PORTS,
            "command": WORDS,
            "args": WORDS,
            "restartPolicy": st.just("Always"),
            "workingDir": ODD,
        },
    )
    return st.lists(container, min_size=least, max_size=3, unique_by=lambda each: str(each["name"]))


POD_SPECS = st.fixed_dictionaries(
    {"containers": containers(1)},
    optional={
        "initContainers": containers(0),
        "volumes": VOLUMES,
        "priorityClassName": st.sampled_from(["high", "system-node-critical"]),
        "overhead": LISTS_OF_QUANTITIES,
        "hostNetwork": ODD,
        "tolerations": st.just([{"operator": "Exists"}]),
    },
)


@st.composite
def jobs(draw: st.DrawFn) -> J:
    """Replicated jobs, most of them whole."""
    template: J = {"spec": {"template": {"spec": draw(POD_SPECS)}}}
    if draw(st.booleans()):
        template["spec"]["parallelism"] = draw(st.sampled_from([0, 1, 3] * 9 + [-1, "x"]))
    ancestor = draw(st.sampled_from([None, "trainer", "trainer", "dataset-initializer", "other"]))
    if ancestor:
        template["metadata"] = {"labels": {ANCESTOR: ancestor}}
    job: J = {"name": draw(NAMES), "template": draw(st.sampled_from([template] * 30 + [{}]))}
    return {
        **job,
        **draw(maybe(replicas=st.sampled_from([1, 1, 2]), dependsOn=st.just([{"name": "x", "status": "Ready"}]))),
    }


def policies() -> st.SearchStrategy[J]:
    """Policies for frameworks."""
    torch = maybe(
        numProcPerNode=st.sampled_from(["auto", "cpu", "gpu", 2]),
        elasticPolicy=maybe(minNodes=st.just(2), maxNodes=st.sampled_from([2, 4]), maxRestarts=st.just(1)),
        envInjection=st.just({"targets": [{"jobName": "node", "containerNames": ["side"]}]}),
    )
    mpi = maybe(
        numProcPerNode=st.sampled_from([1, 2]),
        mpiImplementation=st.sampled_from(["OpenMPI", "", "OpenMPI5", "Intel", "MPICH"]),
        runLauncherAsNode=st.booleans(),
    )
    sources = [("torch", torch), ("mpi", mpi), ("jax", st.just({})), ("xgboost", st.just({}))]
    sources.append(("flux", maybe(numProcPerNode=st.just(2))))
    one_of = st.one_of(*(st.fixed_dictionaries({name: each}) for name, each in sources), st.just({}))
    return st.builds(lambda policy, nodes: {**policy, **nodes}, one_of, maybe(numNodes=st.sampled_from([1, 3])))


RUNTIMES = st.builds(
    lambda name, spec, jobset: {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name},
        "spec": {**spec, "template": {"spec": jobset}},
    },
    st.sampled_from(["rt"] * 9 + ["torchtune-llama3.2-1b"]),
    maybe(
        mlPolicy=policies(),
        podGroupPolicy=st.sampled_from([{"coscheduling": {}}, {"volcano": {"networkTopology": {}}}]),
    ),
    st.fixed_dictionaries(
        {"replicatedJobs": st.lists(jobs(), min_size=1, max_size=3, unique_by=lambda job: str(job["name"]))},
        optional={
            "network": st.just({"subdomain": "sub"}),
            "startupPolicy": st.just({"startupPolicyOrder": "InOrder"}),
            "failurePolicy": ODD,
            "unheard": ODD,
        },
    ),
)
CHANGED_CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"env": ENV, "volumeMounts": MOUNTS}),
    max_size=2,
    unique_by=lambda each: str(each["name"]),
)
CHANGES = maybe(
    nodeSelector=st.just({"a": "b"}),
    volumes=VOLUMES,
    containers=CHANGED_CONTAINERS,
    initContainers=CHANGED_CONTAINERS,
    affinity=st.sampled_from([{}, {"nodeAffinity": {}}] * 9 + [{"nodeAffinity": []}]),
    tolerations=st.just([{"operator": "Exists"}]),
)


def patch(name: str, spec: J) -> J:
    """A runtime patch of one job."""
    jobset = {"replicatedJobs": [{"name": name, "template": {"spec": {"template": {"spec": spec}}}}]}
    return {
        "manager": "a.io/b",
        "trainingRuntimeSpec": {"template": {"metadata": {"labels": {"p": "1"}}, "spec": jobset}},
    }


TRAINERS = maybe(
    numNodes=st.sampled_from([1, 2, 5]),
    numProcPerNode=st.sampled_from([1, 3] * 9 + [0, "auto", "gpu"]),
    image=st.just("mine"),
    command=WORDS | st.just(["tune", "run"]),
    args=WORDS,
    env=ENV,
    resourcesPerNode=RESOURCES,
)
TRAINJOBS = st.builds(
    lambda name, spec: {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "demo", "namespace": "team-a", "uid": "11111111-2222-3333-4444-555555555555"},
        "spec": {**spec, "runtimeRef": {"name": name}},
    },
    st.sampled_from(["rt"] * 9 + ["torchtune-llama3.2-1b"]),
    maybe(
        trainer=TRAINERS,
        suspend=st.booleans(),
        labels=st.just({"l": "1"}),
        initializer=maybe(
            dataset=maybe(storageUri=st.just("hf://a/b"), env=ENV, secretRef=st.just({"name": "s"})), model=st.just({})
        ),
        podTemplateOverrides=st.lists(
            st.builds(lambda name, spec: {"targetJobs": [{"name": name}], "spec": spec}, NAMES, CHANGES), max_size=2
        ),
        runtimePatches=st.lists(st.builds(patch, NAMES, CHANGES), max_size=1),
    ),
)
