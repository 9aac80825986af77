"""`ktrainer webhook`, alone, as a real API server calls it and as users meet it. No controller is at work here."""

from __future__ import annotations

import base64
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from clusters.api import Api, Refused
from clusters.install import path_of
from ktrainer.api.decoding import decode
from ktrainer.api.labels import DEPRECATED, DISABLED, SUPPORT, TRAINJOB_NAME, WEBHOOK_VALIDATION
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS
from ktrainer.api.trainjob import TrainJob
from ktrainer.runtime.blueprint import Blueprint, read_blueprint
from ktrainer.runtime.snapshot import build_snapshot, text_of
from support.certificates import Issuer
from support.kubectl import Kubectl
from support.managers import Manager, ManagerSettings, running_manager, webhook_configurations
from support.training import container, job, runtime, trainjob_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clusters.api import Object
    from clusters.folder import Folder

ELASTIC = {"torch": {"elasticPolicy": {"minNodes": 2, "maxNodes": 4}}}
TORCH = {"numNodes": 2, "torch": {}}


@pytest.fixture(scope="module")
def webhook(cluster: Folder, crds: list[Object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    folder = tmp_path_factory.mktemp("webhook")
    with (
        closing(Api(cluster.kubeconfig("admin"))) as api,
        running_manager(cluster, api, folder, command="webhook") as running,
    ):
        yield running


@pytest.fixture
def kubectl(cluster: Folder) -> Kubectl:
    return Kubectl(cluster.kubeconfig("admin"))


class Team:
    """A namespace with runtimes and TrainJobs, all of which a test can name as it likes."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api = api
        self.namespace = namespace

    def runtime(self, name: str = "rt", *jobs: Object, labels: dict[str, str] | None = None, **spec: Any) -> Object:
        made = runtime(*jobs, kind="TrainingRuntime", name=name, **spec)
        made["metadata"] = {"name": name, "namespace": self.namespace, "labels": labels or {}}
        return made

    def trainjob(self, name: str = "demo", runtime: str = "rt", **spec: Any) -> Object:
        made = trainjob_json(name, runtime=runtime, **{"kind": "TrainingRuntime", **spec})
        made["metadata"] = {"name": name, "namespace": self.namespace}
        return made

    def path(self, kind: str = "trainjobs", name: str = "") -> str:
        collection = f"/apis/trainer.kubeflow.org/v1alpha1/namespaces/{self.namespace}/{kind}"
        return f"{collection}/{name}" if name else collection

    def create(self, value: Object) -> Object:
        resource = {each.kind: each for each in (TRAINJOBS, TRAINING_RUNTIMES)}[value["kind"]]
        return self._api.create(self.path(resource.plural), value)

    def change(self, **spec: Any) -> Object:
        """Change the TrainJob `demo`."""
        return self._api.merge(self.path(name="demo"), {"spec": spec})

    def scale(self, nodes: int) -> Object:
        """Scale the TrainJob `demo` as an autoscaler does."""
        return self._api.merge(f"{self.path(name='demo')}/scale", {"spec": {"replicas": nodes}})

    def keep_snapshot(self, trainjob: Object, made_of: Object) -> None:
        """Write the snapshot that the controller would have written."""
        stored, blueprint = decode(TrainJob, trainjob), read_blueprint(made_of["kind"], made_of)
        assert isinstance(stored, TrainJob)
        assert isinstance(blueprint, Blueprint)
        body = build_snapshot(stored, text_of(blueprint)).body
        assert TRAINJOB_NAME in body["metadata"]["labels"]
        self._api.create(f"/api/v1/namespaces/{self.namespace}/configmaps", body)


@pytest.fixture
def team(admin: Api, namespace: str) -> Team:
    return Team(admin, namespace)


pytestmark = pytest.mark.usefixtures("webhook")


def patch(name: str = "node", manager: str = "acme.io/placement", **pod: Any) -> Object:
    jobs = [{"name": name, "template": {"spec": {"template": {"spec": pod}}}}]
    return {"manager": manager, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}


def test_a_runtime_and_its_job_in_one_file_should_be_taken_together(kubectl: Kubectl, team: Team) -> None:
    for number in range(10):
        name = f"together-{number}"
        printed = kubectl.apply(team.runtime(name, mlPolicy=TORCH), team.trainjob(name, name))
        assert (printed.code, printed.errors) == (0, "")


def test_all_findings_should_come_at_once_as_kubectl_users_know_them(kubectl: Kubectl, team: Team) -> None:
    team.create(team.runtime(mlPolicy=TORCH))
    printed = kubectl.apply(
        team.trainjob(
            trainer={"env": [{"name": "PET_NNODES", "value": "1"}]},
            initializer={"dataset": {}},
            runtimePatches=[patch("nobody"), patch(manager="bad", nodeSelector={"a": "b"})],
        )
    )
    assert printed.code == 1
    assert "Error from server (Forbidden)" in printed.errors
    assert 'admission webhook "validator.trainjob.trainer.kubeflow.org" denied the request: [' in printed.errors
    for text in (
        'spec.runtimePatches: Invalid value: "nobody": the runtime has no such job',
        "spec.trainer.env: Invalid value: ",
        "spec.runtimeRef: Invalid value: ",
        'spec.runtimePatches.manager: Invalid value: "bad": must be a path under a domain',
    ):
        assert text in printed.errors


@pytest.mark.parametrize(
    "ref, text",
    [
        ({"kind": "Recipe", "apiGroup": "acme.io", "name": "x"}, "unsupported runtime: Recipe.acme.io"),
        ({"kind": "TrainingRuntime", "name": "missing"}, "spec.runtimeRef: Invalid value: "),
    ],
)
def test_a_runtime_that_is_not_there_should_be_named(team: Team, ref: Object, text: str) -> None:
    value = team.trainjob()
    value["spec"]["runtimeRef"] = ref
    with pytest.raises(Refused, match=text) as refused:
        team.create(value)
    assert (refused.value.code, refused.value.status["reason"]) == (403, "Forbidden")


def test_a_name_that_the_server_generates_should_be_judged_like_any_other(team: Team) -> None:
    team.create(team.runtime(mlPolicy=TORCH))
    value = team.trainjob()
    value["metadata"] = {"generateName": "demo-", "namespace": team.namespace}
    assert team.create(value)["metadata"]["name"].startswith("demo-")


@pytest.mark.parametrize(
    "before, after, is_allowed",
    [(False, False, False), (True, True, True), (True, False, True), (False, True, True)],
    ids=["running", "suspended", "resumed", "suspending"],
)
def test_changes_of_the_runtime_should_need_a_suspended_job_before_or_after(
    team: Team, before: bool, after: bool, is_allowed: bool
) -> None:
    team.create(team.runtime(mlPolicy=TORCH))
    team.create(team.trainjob(suspend=before))
    override = {"targetJobs": [{"name": "node"}], "spec": {"nodeSelector": {"a": "b"}}}
    change = {"runtimePatches": [patch(nodeSelector={"a": "b"})], "podTemplateOverrides": [override], "suspend": after}
    if is_allowed:
        team.change(**change)
        return
    with pytest.raises(Refused) as refused:
        team.change(**change)
    message = refused.value.status["message"]
    assert "spec.runtimePatches: Forbidden: " in message
    assert "spec.podTemplateOverrides: Forbidden: " in message


def test_runtime_patches_should_be_dated(team: Team) -> None:
    team.create(team.runtime(mlPolicy=TORCH))
    made = team.create(team.trainjob(suspend=True, runtimePatches=[patch(nodeSelector={"a": "b"})]))
    time = made["spec"]["runtimePatches"][0]["time"]
    same = team.change(runtimePatches=[{**patch(nodeSelector={"a": "b"}), "time": "2020-01-01T00:00:00Z"}])
    assert same["spec"]["runtimePatches"][0]["time"] == time
    claimed = {**patch(nodeSelector={"a": "c"}), "time": "2020-01-01T00:00:00Z"}
    assert team.change(runtimePatches=[claimed])["spec"]["runtimePatches"][0]["time"] >= time


@pytest.mark.parametrize(
    "spec, words",
    [
        ([], "spec in body must be of type object"),
        ({"runtimePatches": {}}, "spec.runtimePatches in body must be of type array"),
        ({"runtimePatches": ["x"]}, "spec.runtimePatches[0] in body must be of type object"),
        ({"runtimePatches": [{"manager": ["x"]}]}, "spec.runtimePatches[0].manager in body must be of type string"),
    ],
)
def test_what_is_malformed_should_be_refused_in_the_words_of_the_schema(
    kubectl: Kubectl, team: Team, webhook: Manager, spec: Any, words: str
) -> None:
    value = team.trainjob()
    value["spec"] = spec if isinstance(spec, list) else {**value["spec"], **spec}
    printed = kubectl.run("create", "--validate=false", "-f", "-", text=yaml.safe_dump(value))
    assert printed.code == 1
    assert words in printed.errors
    _, text = webhook.scrape()
    assert "controller_runtime_webhook_panics_total 0.0" in text


def test_the_snapshot_should_decide_once_it_is_there(admin: Api, team: Team) -> None:
    given = team.runtime(mlPolicy=TORCH)
    team.create(given)
    team.keep_snapshot(team.create(team.trainjob(suspend=True)), given)
    admin.delete(team.path("trainingruntimes", "rt"))
    team.change(suspend=False)
    team.change(suspend=True, runtimePatches=[patch(nodeSelector={"a": "b"})])
    with pytest.raises(Refused, match="the runtime has no such job"):
        team.change(runtimePatches=[patch("nobody")])
    admin.delete(team.path(name="demo"))


def test_a_job_without_runtime_and_snapshot_should_still_be_let_go(admin: Api, team: Team) -> None:
    team.create(team.runtime(mlPolicy=TORCH))
    value = team.trainjob()
    value["metadata"]["finalizers"] = ["acme.io/finalizer"]
    team.create(value)
    admin.delete(team.path("trainingruntimes", "rt"))
    admin.merge(team.path(name="demo"), {"metadata": {"labels": {"a": "b"}}})
    admin.delete(team.path(name="demo"))
    admin.merge(team.path(name="demo"), {"metadata": {"finalizers": []}})
    with pytest.raises(Refused, match="404"):
        admin.get(team.path(name="demo"))


def test_an_elastic_job_should_scale_within_its_bounds(kubectl: Kubectl, team: Team) -> None:
    team.create(team.runtime(mlPolicy=ELASTIC))
    team.create(team.trainjob(trainer={"numNodes": 2}))
    assert team.scale(4)["spec"]["replicas"] == 4
    for nodes in (1, 5):
        with pytest.raises(
            Refused, match=rf"spec\.trainer\.numNodes: Invalid value: {nodes}: the runtime allows 2 to 4"
        ):
            team.scale(nodes)
    with pytest.raises(Refused, match="the runtime allows 2 to 4 nodes"):
        team.change(trainer={"numNodes": 9})
    printed = kubectl.run("scale", "trainjob/demo", "--replicas=3", f"--namespace={team.namespace}")
    assert (printed.code, printed.errors) == (0, "")


def test_a_job_that_is_not_elastic_should_not_scale(team: Team) -> None:
    team.create(team.runtime(mlPolicy=TORCH))
    team.create(team.trainjob(trainer={"numNodes": 2}))
    with pytest.raises(Refused, match=r"spec\.trainer\.numNodes: Invalid value: 3: field is immutable"):
        team.scale(3)
    with pytest.raises(Refused, match=r"spec\.trainer\.numNodes: Invalid value: 3: field is immutable"):
        team.change(trainer={"numNodes": 3})


@pytest.fixture
def cluster_runtime(admin: Api, namespace: str) -> Iterator[Object]:
    """A runtime of the whole cluster, named after the test's namespace; it is removed, if it was made."""
    yield runtime(name=namespace, mlPolicy=TORCH)
    for each in admin.get(_CLUSTER_RUNTIMES)["items"]:
        if each["metadata"]["name"] == namespace:
            admin.delete(f"{_CLUSTER_RUNTIMES}/{namespace}")


_CLUSTER_RUNTIMES = f"/apis/trainer.kubeflow.org/v1alpha1/{CLUSTER_TRAINING_RUNTIMES.plural}"


def test_a_runtime_should_be_for_the_namespaces_that_it_allows(admin: Api, team: Team, cluster_runtime: Object) -> None:
    cluster_runtime["spec"]["allowedNamespaces"] = {"matchLabels": {"team": "a"}}
    admin.create(_CLUSTER_RUNTIMES, cluster_runtime)
    value = team.trainjob(runtime=team.namespace, kind="ClusterTrainingRuntime")
    with pytest.raises(Refused, match=f"is not for TrainJobs of the namespace {team.namespace}"):
        team.create(value)
    admin.merge(f"/api/v1/namespaces/{team.namespace}", {"metadata": {"labels": {"team": "a"}}})
    team.create(value)


def test_a_deprecated_runtime_should_be_warned_of(kubectl: Kubectl, team: Team) -> None:
    team.create(team.runtime("old", labels={SUPPORT: DEPRECATED}, mlPolicy=TORCH))
    printed = kubectl.apply(team.trainjob(runtime="old"))
    assert printed.code == 0
    assert "Warning: the TrainingRuntime old is deprecated, and will be removed" in printed.errors


BAD = job("node", "trainer", container("x"), replicas=2)
REASONS = (
    "spec.template.spec.replicatedJobs[0].replicas: Invalid value: 2: must be 1",
    'spec.template.spec.replicatedJobs[0].template.spec.template.spec.containers: Invalid value: ["x"]',
)


def test_a_runtime_that_plugins_cannot_use_should_be_refused(
    kubectl: Kubectl, team: Team, cluster_runtime: Object
) -> None:
    bad_cluster_runtime = {**cluster_runtime, "spec": {"template": {"spec": {"replicatedJobs": [BAD]}}}}
    for value in (team.runtime("rt", BAD), bad_cluster_runtime):
        printed = kubectl.apply(value)
        assert printed.code == 1
        assert all(text in printed.errors for text in REASONS)


def test_a_bad_update_should_be_refused_for_the_clusters_kind_and_warned_of_for_the_other(
    kubectl: Kubectl, admin: Api, team: Team, cluster_runtime: Object
) -> None:
    admin.create(_CLUSTER_RUNTIMES, cluster_runtime)
    team.create(team.runtime())
    jobs = {"template": {"spec": {"replicatedJobs": [BAD]}}}
    with pytest.raises(Refused, match="must be 1"):
        admin.merge(f"{_CLUSTER_RUNTIMES}/{team.namespace}", {"spec": jobs})
    printed = kubectl.apply(team.runtime("rt", BAD))
    assert printed.code == 0
    assert "Warning: spec.template.spec.replicatedJobs[0].replicas: must be 1" in printed.errors


def test_a_labelled_runtime_should_not_be_judged(admin: Api, team: Team, cluster_runtime: Object) -> None:
    labels = {WEBHOOK_VALIDATION: DISABLED}
    team.create(team.runtime("rt", BAD, labels=labels))
    cluster_runtime["metadata"]["labels"] = labels
    cluster_runtime["spec"]["template"]["spec"]["replicatedJobs"] = [BAD]
    admin.create(_CLUSTER_RUNTIMES, cluster_runtime)


def test_a_dry_run_should_be_judged_and_dated_like_any_other(kubectl: Kubectl, team: Team) -> None:
    team.create(team.runtime(mlPolicy=TORCH))
    manifest = team.trainjob(runtimePatches=[patch("nobody")])
    refused = kubectl.run("create", "--dry-run=server", "-f", "-", text=yaml.safe_dump(manifest))
    assert "the runtime has no such job" in refused.errors
    manifest = team.trainjob(runtimePatches=[patch(nodeSelector={"a": "b"})])
    printed = kubectl.run("create", "--dry-run=server", "-o", "yaml", "-f", "-", text=yaml.safe_dump(manifest))
    assert "time: " in printed.output


def test_refusals_should_show_in_the_metrics(webhook: Manager, team: Team) -> None:
    with pytest.raises(Refused, match="must exist before the TrainJob"):
        team.create(team.trainjob(runtime="missing"))
    status, text = webhook.scrape()
    assert status == 200
    (line,) = [
        line
        for line in text.splitlines()
        if line.startswith('ktrainer_admission_denials_total{kind="TrainJob",operation="CREATE"}')
    ]
    assert float(line.split()[-1]) >= 1
    path = "/validate-trainer-kubeflow-org-v1alpha1-trainjob"
    assert f'controller_runtime_webhook_requests_total{{code="200",webhook="{path}"}}' in text


def test_a_certificate_from_outside_should_be_served(cluster: Folder, admin: Api, team: Team, tmp_path: Path) -> None:
    issuer = Issuer()
    for name, content in zip(("tls.crt", "tls.key"), issuer.pair("127.0.0.1"), strict=True):
        (tmp_path / name).write_bytes(content)
    outside = {"certManagement": {"enable": False}, "webhook": {"certDir": str(tmp_path)}}
    settings = ManagerSettings(cluster.kubeconfig("admin"), command="webhook", configuration=outside, folder=tmp_path)
    webhook = Manager(settings, tmp_path, "outside")
    configuration = webhook_configurations(webhook.ports.webhook)[-1]
    assert configuration["kind"] == "ValidatingWebhookConfiguration"
    configuration["metadata"]["name"] = team.namespace
    for hook in configuration["webhooks"]:
        hook["clientConfig"]["caBundle"] = base64.b64encode(issuer.authority).decode()
        hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": team.namespace}}
    admin.apply(path_of(configuration), configuration)
    try:
        webhook.start()
        webhook.wait_ready()
        team.create(team.runtime(mlPolicy=TORCH))
        path = "/validate-trainer-kubeflow-org-v1alpha1-trainingruntime"
        _, text = webhook.scrape()
        (line,) = [
            line
            for line in text.splitlines()
            if line.startswith(f'controller_runtime_webhook_requests_total{{code="200",webhook="{path}"}}')
        ]
        assert float(line.split()[-1]) == 1
    finally:
        webhook.crash()
        admin.delete(path_of(configuration))
