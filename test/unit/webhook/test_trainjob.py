"""TrainJobs at the webhook: every refusal that the behaviour names, and what is never refused."""

from typing import Any

import pytest

from ktrainer.api.labels import DEPRECATED, SUPPORT
from ktrainer.app.documents import run_now
from ktrainer.app.training import build_training
from ktrainer.kube.jsonvalue import copy_of
from support.hookcases import Webhook
from support.laggingcluster import Cluster
from support.training import as_trainjob, container, initializer, job, runtime, trainjob_json

J = dict[str, Any]

TORCH = runtime(mlPolicy={"numNodes": 2, "torch": {}})
ELASTIC = runtime(mlPolicy={"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}})
INJECTING = runtime(
    mlPolicy={"torch": {"envInjection": {"targets": [{"jobName": "node", "containerNames": ["nobody"]}]}}}
)
TUNE = runtime(
    job("node", "trainer", container(command=["tune", "run"])), name="torchtune-llama3.2-1b", mlPolicy={"torch": {}}
)
MPI = runtime(job("launcher"), job("node", None), mlPolicy={"mpi": {"runLauncherAsNode": True}})
LAUNCHER_ONLY = runtime(job("launcher"), mlPolicy={"mpi": {"runLauncherAsNode": True}})
FLUX = runtime(mlPolicy={"flux": {}})
XGBOOST = runtime(mlPolicy={"xgboost": {}})
VOLCANO = runtime(
    job("node", "trainer", pod={"priorityClassName": "nobody"}),
    podGroupPolicy={"volcano": {}},
)
RESTRICTED = runtime(allowedNamespaces={"matchLabels": {"team": "b"}})
TEAM_A = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a", "labels": {"team": "a"}}}


def patch(name: str = "node", manager: str = "acme.io/placement", **pod: Any) -> J:
    """A runtime patch of one job's pods."""
    jobs = [{"name": name, "template": {"spec": {"template": {"spec": pod}}}}]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


def override(name: str = "node", **pod: Any) -> J:
    return {"targetJobs": [{"name": name}], "spec": pod}


def env(*names: str) -> list[J]:
    return [{"name": name, "value": "1"} for name in names]


def tune(name: str = "torchtune-llama3.2-1b", **trainer: Any) -> J:
    return trainjob_json(runtime=name, trainer={"command": ["tune", "run"], **trainer})


QLORA = ["model.lora_attn_modules=[q_proj]", "model.quantize_base=True"]
PATCHES, OVERRIDES = "spec.runtimePatches", "spec.podTemplateOverrides"

REFUSALS = [
    pytest.param(None, trainjob_json(), "spec.runtimeRef: Invalid value", id="a runtime that is missing"),
    pytest.param(
        runtime(kind="TrainingRuntime", name="other"),
        trainjob_json(kind="TrainingRuntime"),
        "spec.runtimeRef: Invalid value",
        id="a namespaced runtime that is missing",
    ),
    pytest.param(
        RESTRICTED, trainjob_json(), "is not for TrainJobs of the namespace team-a", id="a namespace that may not"
    ),
    *(
        pytest.param(
            TORCH, trainjob_json(trainer={"env": env(name)}), "spec.trainer.env: Invalid value", id=f"torch sets {name}"
        )
        for name in ("PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT")
    ),
    pytest.param(
        TORCH, trainjob_json(trainer={"numProcPerNode": 0}), "spec.trainer.numProcPerNode", id="torch: no process"
    ),
    pytest.param(
        TORCH, trainjob_json(trainer={"numProcPerNode": "many"}), "spec.trainer.numProcPerNode", id="torch: many"
    ),
    pytest.param(INJECTING, trainjob_json(), "spec.runtimeRef: Invalid value", id="torch: nobody to inject into"),
    pytest.param(ELASTIC, trainjob_json(trainer={"numNodes": 5}), "spec.trainer.numNodes: Invalid value: 5", id="max"),
    pytest.param(ELASTIC, trainjob_json(trainer={"numNodes": 1}), "spec.trainer.numNodes: Invalid value: 1", id="min"),
    pytest.param(
        runtime(name="a-b", mlPolicy={"torch": {}}), tune("a-b"), "spec.runtimeRef.name", id="tune: unknown model"
    ),
    pytest.param(TUNE, tune(numNodes=2), "spec.trainer.numNodes", id="tune: several nodes"),
    pytest.param(TUNE, tune(numProcPerNode=2, args=QLORA), "spec.trainer.numProcPerNode", id="tune: two QLoRAs"),
    pytest.param(
        runtime(name="torchtune-qwen2.5-1.5b", mlPolicy={"torch": {}}),
        tune("torchtune-qwen2.5-1.5b", numProcPerNode=1, args=QLORA),
        "spec.runtimeRef.name",
        id="tune: QLoRA of qwen",
    ),
    *(
        pytest.param(TUNE, tune(args=["a=b", f"{key}=x"]), "spec.trainer.args[1]", id=f"tune: {key}")
        for key in ("output_dir", "tokenizer.path", "checkpointer.checkpoint_dir", "tokenizer.merges_file")
    ),
    pytest.param(
        MPI, trainjob_json(trainer={"env": env("OMPI_MCA_plm_rsh_args")}), "spec.trainer.env", id="mpi sets a variable"
    ),
    pytest.param(
        LAUNCHER_ONLY, trainjob_json(trainer={"numNodes": 2}), "spec.trainer.numNodes", id="mpi: no job for nodes"
    ),
    pytest.param(
        MPI, trainjob_json(trainer={"numProcPerNode": "auto"}), "spec.trainer.numProcPerNode", id="mpi: a word"
    ),
    pytest.param(
        XGBOOST,
        trainjob_json(trainer={"env": env("A", "DMLC_TASK_ID")}),
        "spec.trainer.env[1]: Forbidden",
        id="xgboost sets a variable",
    ),
    pytest.param(
        runtime(job("node", "trainer", pod={"initContainers": [container("flux-installer")]}), mlPolicy={"flux": {}}),
        trainjob_json(),
        "spec.trainer.initContainers",
        id="flux: its installer",
    ),
    pytest.param(
        runtime(),
        trainjob_json(initializer={"dataset": {}}),
        "spec.runtimeRef: Invalid value",
        id="no initializer",
    ),
    pytest.param(
        runtime(job(), job("model-initializer", "model-initializer", container("x"))),
        trainjob_json(initializer={"model": {}}),
        "spec.runtimeRef: Invalid value",
        id="an initializer without its container",
    ),
    pytest.param(
        runtime(job(), job("model-initializer", "model-initializer", container("model-initializer"))),
        trainjob_json(initializer={"model": {}}),
        "spec.runtimeRef: Invalid value",
        id="an initializer without its mount",
    ),
    pytest.param(
        TORCH, trainjob_json(runtimePatches=[patch("nobody")]), f"{PATCHES}: Invalid value", id="patch of no job"
    ),
    pytest.param(
        TORCH,
        trainjob_json(runtimePatches=[patch(containers=[{"name": "nobody"}])]),
        f"{PATCHES}: Invalid value",
        id="patch of no container",
    ),
    pytest.param(
        TORCH,
        trainjob_json(runtimePatches=[patch(initContainers=[{"name": "nobody"}])]),
        f"{PATCHES}: Invalid value",
        id="patch of no init container",
    ),
    pytest.param(
        TORCH,
        trainjob_json(runtimePatches=[patch(containers=[{"name": "node", "env": env("A")}])]),
        f"{PATCHES}: Invalid value",
        id="patch of variables that are set elsewhere",
    ),
    pytest.param(
        TORCH,
        trainjob_json(runtimePatches=[patch(manager="nobody")]),
        f"{PATCHES}.manager: Invalid value",
        id="patch of a bad manager",
    ),
    pytest.param(
        TORCH, trainjob_json(podTemplateOverrides=[override("nobody")]), f"{OVERRIDES}: Invalid", id="override: no job"
    ),
    pytest.param(
        TORCH,
        trainjob_json(podTemplateOverrides=[override(containers=[{"name": "nobody"}])]),
        f"{OVERRIDES}: Invalid value",
        id="override of no container",
    ),
    pytest.param(
        TORCH,
        trainjob_json(podTemplateOverrides=[override(containers=[{"name": "node", "env": env("A")}])]),
        f"{OVERRIDES}: Invalid value",
        id="override of variables that are set elsewhere",
    ),
    pytest.param(
        runtime(podGroupPolicy={"volcano": {}}),
        trainjob_json(annotations={"scheduling.volcano.sh/queue-name": ""}),
        "spec.annotations",
        id="volcano: no queue",
    ),
    pytest.param(VOLCANO, trainjob_json(), "spec.templateSpec.priorityClassName", id="volcano: no such priority"),
    pytest.param(TORCH, trainjob_json("Bad_Name"), "metadata.name", id="a name that is no label"),
]


@pytest.mark.parametrize("given, wanted, text", REFUSALS)
async def test_what_does_not_fit_its_runtime_should_be_refused(given: J | None, wanted: J, text: str) -> None:
    objects = [TEAM_A, *([given] if given else [])]
    response = await Webhook(Cluster(*objects)).judge(wanted)
    assert (response["allowed"], response["status"]["code"]) == (False, 403)
    assert response["status"]["reason"] == "Forbidden"
    assert text in response["status"]["message"]


@pytest.mark.parametrize(
    "given, wanted",
    [
        (TORCH, trainjob_json()),
        (TORCH, trainjob_json(trainer={"env": env("MINE"), "numProcPerNode": "auto"})),
        (ELASTIC, trainjob_json(trainer={"numNodes": 4})),
        (runtime(job(), initializer("dataset-initializer")), trainjob_json(initializer={"dataset": {}})),
        (TORCH, trainjob_json(runtimePatches=[patch(nodeSelector={"a": "b"})])),
        (runtime(kind="TrainingRuntime"), trainjob_json(kind="TrainingRuntime")),
        (FLUX, trainjob_json()),
    ],
)
async def test_what_fits_should_be_allowed_without_a_word(given: J, wanted: J) -> None:
    assert await Webhook(Cluster(given)).judge(wanted) == {"uid": "u-7", "allowed": True}


async def test_all_findings_should_come_at_once_each_with_path_kind_value_and_reason() -> None:
    wanted = trainjob_json(
        trainer={"env": env("PET_NNODES")},
        initializer={"dataset": {}},
        runtimePatches=[patch("nobody"), patch(manager="bad", nodeSelector={})],
    )
    message = (await Webhook(Cluster(TORCH)).judge(wanted))["status"]["message"]
    assert message.startswith('[spec.runtimePatches: Invalid value: "nobody": the runtime has no such job, ')
    assert "spec.trainer.env: Invalid value: " in message
    assert "spec.runtimeRef: Invalid value: " in message
    assert 'spec.runtimePatches.manager: Invalid value: "bad": must be a path under a domain' in message


async def test_a_runtime_kind_that_nobody_knows_should_be_named() -> None:
    wanted = trainjob_json(kind="Recipe")
    wanted["spec"]["runtimeRef"]["apiGroup"] = "acme.io"
    response = await Webhook().judge(wanted)
    assert response["status"]["message"] == "unsupported runtime: Recipe.acme.io"
    assert (response["allowed"], response["status"]["code"], response["status"]["reason"]) == (False, 403, "Forbidden")


async def test_a_deprecated_runtime_should_be_warned_of() -> None:
    old = copy_of(TORCH)
    old["metadata"]["labels"] = {SUPPORT: DEPRECATED}
    response = await Webhook(Cluster(old)).judge(trainjob_json())
    assert response["allowed"]
    assert response["warnings"] == ["the ClusterTrainingRuntime rt is deprecated, and will be removed"]


def versioned(value: J, version: str) -> J:
    return {**value, "metadata": {**value["metadata"], "resourceVersion": version}}


@pytest.mark.parametrize("cached", [[], [versioned(runtime(job("x")), "1")]], ids=["nothing", "an older one"])
async def test_nothing_should_be_refused_on_a_stale_view(cached: list[J]) -> None:
    wanted = trainjob_json(runtimePatches=[patch()])
    assert (await Webhook(Cluster(versioned(TORCH, "2"), cached=cached)).judge(wanted))["allowed"]


async def test_what_cannot_be_judged_should_be_refused_as_a_failure() -> None:
    class Broken(Cluster):
        async def fetch(self, *_: Any, **__: Any) -> J | None:
            raise OSError("no route to host")

    response = await Webhook(Broken()).judge(trainjob_json())
    assert (response["allowed"], response["status"]["code"]) == (False, 500)


def snapshot_of(wanted: J, given: J) -> J:
    """The snapshot that the first pass writes."""
    made = as_trainjob(wanted)
    plan = run_now(build_training(Cluster(given).dependencies).of(made.spec.runtime_ref).plan(made))
    body: J = plan.components[0].body
    return body


OLD = trainjob_json(trainer={"numNodes": 2}, suspend=False)


def updated(value: J = OLD, **spec: Any) -> J:
    return {**value, "spec": {**value["spec"], **spec}}


CHANGES = [
    pytest.param({"runtimePatches": [patch(nodeSelector={"a": "b"})]}, PATCHES, id="patches"),
    pytest.param({"podTemplateOverrides": [override(nodeSelector={"a": "b"})]}, OVERRIDES, id="overrides"),
]


@pytest.mark.parametrize("change, path", CHANGES)
@pytest.mark.parametrize(
    "before, after, is_allowed",
    [(False, False, False), (True, True, True), (True, False, True), (False, True, True)],
    ids=["running", "suspended", "resumed", "suspending"],
)
async def test_changes_of_the_runtime_should_need_a_suspended_job_before_or_after(
    change: J, path: str, before: bool, after: bool, is_allowed: bool
) -> None:
    response = await Webhook(Cluster(TORCH)).judge(updated(**change, suspend=after), updated(suspend=before))
    assert response["allowed"] == is_allowed
    if not is_allowed:
        assert f"{path}: Forbidden" in response["status"]["message"]


async def test_the_snapshot_should_decide_on_an_update() -> None:
    kept = snapshot_of(OLD, TORCH)
    changed = runtime(job("other"), mlPolicy={"jax": {}})
    new = updated(suspend=True, runtimePatches=[patch(nodeSelector={"a": "b"})])
    for objects in ([kept], [kept, changed]):
        assert (await Webhook(Cluster(*objects)).judge(new, OLD))["allowed"]
    refused = await Webhook(Cluster(kept, changed)).judge(updated(suspend=True, runtimePatches=[patch("other")]), OLD)
    assert "spec.runtimePatches" in refused["status"]["message"]


async def test_a_job_whose_runtime_is_gone_should_be_free_to_be_suspended_and_resumed() -> None:
    webhook = Webhook(Cluster(snapshot_of(OLD, TORCH)))
    assert (await webhook.judge(updated(suspend=True), OLD))["allowed"]
    assert (await webhook.judge(updated(suspend=False), updated(suspend=True)))["allowed"]


@pytest.mark.parametrize(
    "metadata",
    [{"finalizers": []}, {"labels": {"a": "b"}}, {"deletionTimestamp": "2026-01-02T03:04:05Z", "finalizers": []}],
    ids=["finalizers", "labels", "being deleted"],
)
async def test_what_leaves_the_spec_alone_should_be_allowed_without_a_look(metadata: J) -> None:
    old = copy_of(OLD)
    old["metadata"]["finalizers"] = ["acme.io/finalizer"]
    new = {**copy_of(old), "metadata": {**old["metadata"], **metadata}}
    if "deletionTimestamp" in metadata:
        new = updated(new, runtimePatches=[patch("nobody")])
    webhook = Webhook()
    assert (await webhook.judge(new, old))["allowed"]
    assert webhook.cluster.reads == []


@pytest.mark.parametrize("old", [{}, [], {"metadata": {"deletionTimestamp": 1}}])
async def test_what_an_old_object_lacks_should_not_keep_the_new_one_from_being_judged(old: Any) -> None:
    good, bad = trainjob_json(suspend=True), trainjob_json(trainer={"env": env("PET_NNODES")})
    webhook = Webhook(Cluster(TORCH))
    assert (await webhook.judge(good, old))["allowed"]
    assert "spec.trainer.env" in (await webhook.judge(bad, old))["status"]["message"]
    refused = await webhook.judge({"metadata": {"name": "demo", "deletionTimestamp": 5}}, good)
    assert refused["status"]["code"] == 403
    assert "metadata.deletionTimestamp: Invalid value: 5" in refused["status"]["message"]


async def test_the_number_of_nodes_should_change_only_where_the_runtime_is_elastic() -> None:
    new = updated(trainer={"numNodes": 3})
    assert (await Webhook(Cluster(ELASTIC)).judge(new, OLD))["allowed"]
    refused = await Webhook(Cluster(TORCH)).judge(new, OLD)
    assert "spec.trainer.numNodes: Invalid value: 3: field is immutable" in refused["status"]["message"]


async def test_a_job_that_was_stored_under_a_looser_schema_should_be_mended() -> None:
    bad = updated(trainer={"numNodes": 0})
    assert (await Webhook(Cluster(TORCH)).judge(OLD, bad))["allowed"]


@pytest.mark.parametrize(
    "given, nodes, is_allowed",
    [(ELASTIC, 2, True), (ELASTIC, 4, True), (ELASTIC, 5, False), (ELASTIC, 1, False), (TORCH, 3, False)],
)
async def test_scaling_should_be_judged_by_the_runtime(given: J, nodes: int, is_allowed: bool) -> None:
    response = await Webhook(Cluster(given, OLD)).scale(nodes)
    assert response["allowed"] == is_allowed
    if not is_allowed:
        assert f"spec.trainer.numNodes: Invalid value: {nodes}: " in response["status"]["message"]


async def test_scaling_should_go_by_the_job_as_it_is_now() -> None:
    bare = trainjob_json()
    cluster = Cluster(ELASTIC, bare, cached=[ELASTIC, {**OLD, "spec": {"runtimeRef": {"name": "gone"}}}])
    assert (await Webhook(cluster).scale(3))["allowed"]
    assert not (await Webhook(cluster).scale(7))["allowed"]


async def test_scaling_should_need_an_elastic_runtime_also_where_no_number_was_given() -> None:
    cluster = Cluster(TORCH, trainjob_json())
    assert not (await Webhook(cluster).scale(3))["allowed"]


async def test_scaling_what_is_gone_should_be_left_to_the_api_server() -> None:
    assert (await Webhook(Cluster(ELASTIC)).scale(3))["allowed"]


async def test_refusals_should_be_counted_by_kind_and_operation() -> None:
    webhook = Webhook(Cluster(TORCH))
    await webhook.judge(trainjob_json(runtime="missing"))
    await webhook.judge(trainjob_json())

    def count(operation: str) -> float | None:
        labels = {"kind": "TrainJob", "operation": operation}
        return webhook.registry.get_sample_value("ktrainer_admission_denials_total", labels)

    assert (count("CREATE"), count("UPDATE")) == (1, 0)
