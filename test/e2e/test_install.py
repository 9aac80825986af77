"""An installation by `config/default`, in a cluster of its own, with the shipped roles and configuration alone."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from clusters.api import Api, Object, Refused
from clusters.audit import events_of
from clusters.folder import Folder
from clusters.install import established
from clusters.wait import wait_for
from demo.jobs import read_examples
from deployment.account import NAME, NAMESPACE, write_token
from deployment.deployment import Deployment
from deployment.kubectl import Kubectl
from support.manifests import CONFIG, objects_of
from support.rbacproof import forbidden_in
from support.realcluster import new_cluster, programs

CRDS = objects_of(CONFIG / "crd")
EXAMPLES = read_examples()
TRAINJOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/kubeflow-trainer-webhook-cert"


@pytest.fixture(scope="module")
def fresh() -> Iterator[Folder]:
    """A cluster that knows nothing of ktrainer."""
    with new_cluster("-install") as folder:
        yield folder


@pytest.fixture(scope="module")
def api(fresh: Folder) -> Iterator[Api]:
    with closing(Api(fresh.kubeconfig("admin"))) as api:
        yield api


@dataclass(frozen=True)
class Start:
    """How an installation came up whose CRDs were the last to come."""

    deployment: Deployment
    said: str
    """The warnings of its manager before there were CRDs."""
    was_ready: bool
    """Whether the manager was ready before there were CRDs."""
    seconds: float
    """How long it took from the CRDs until the manager was ready."""


@pytest.fixture(scope="module")
def start(fresh: Folder, api: Api) -> Start:
    """An installation from its first moment until it is ready."""
    deployment = Deployment(fresh, Kubectl(programs().programs["kubectl"], fresh.kubeconfig("admin")))
    deployment.install("rbac", "webhook", "manager")
    deployment.start()
    wait_for(lambda: all(crd["spec"]["names"]["plural"] in warnings_of(deployment) for crd in CRDS), 20)
    said, was_ready = warnings_of(deployment), deployment.is_ready
    deployment.install()
    assert wait_for(lambda: established(api, CRDS), 20)
    began = time.monotonic()
    deployment.wait_ready()
    return Start(deployment, said, was_ready, time.monotonic() - began)


@pytest.fixture(scope="module")
def installed(start: Start) -> Deployment:
    """The installation, ready, with its runtimes."""
    start.deployment.install_runtimes()
    start.deployment.wait_known()
    return start.deployment


def warnings_of(deployment: Deployment) -> str:
    lines = deployment.folder.log("ktrainer-manager").read_text().splitlines()
    return "\n".join(line for line in lines if '"level":"warning"' in line)


def create(api: Api, path: str, value: Object) -> Object:
    """Create an object as soon as the webhook is known to the API server, which takes a moment."""
    made: list[Object] = []

    def is_made() -> bool:
        try:
            made.append(api.create(path, value))
        except Refused as refusal:
            if refusal.code < 500:
                raise
        return bool(made)

    assert wait_for(is_made, 20, 0.2)
    return made[0]


def test_a_manager_before_its_crds_should_wait_and_say_so(start: Start) -> None:
    for crd in CRDS:
        assert crd["metadata"]["name"] in start.said
    assert not start.was_ready


def test_an_installation_should_be_ready_soon_after_its_crds_exist(start: Start, api: Api) -> None:
    assert start.seconds <= 20
    assert set(api.get(SECRET)["data"]) >= {"ca.crt", "ca.key", "tls.crt", "tls.key"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example["spec"]["runtimeRef"]["name"])
def test_a_trainjob_of_each_shipped_runtime_should_be_admitted_and_get_its_jobset(
    installed: Deployment, api: Api, example: Object
) -> None:
    made = create(api, TRAINJOBS, example)
    # The webhook has been there: it writes the time of a patch.
    assert made["spec"]["runtimePatches"][0]["time"]
    name = example["metadata"]["name"]
    is_there = wait_for(lambda: name in {each["metadata"]["name"] for each in api.get(JOBSETS)["items"]}, 20)
    assert is_there, api.get(f"{TRAINJOBS}/{name}").get("status")


def test_a_bad_trainjob_should_be_refused(installed: Deployment, api: Api) -> None:
    reserved = {"name": "PET_NNODES", "value": "1"}
    spec = {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"env": [reserved]}}
    bad = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": {"name": "bad"}, "spec": spec}
    with pytest.raises(Refused, match=r"spec\.trainer\.env") as refusal:
        create(api, TRAINJOBS, bad)
    assert refusal.value.code == 403


def test_the_pods_of_the_deployment_should_be_accepted(installed: Deployment, api: Api) -> None:
    path = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{NAME}"
    assert wait_for(lambda: api.get(path).get("status", {}).get("availableReplicas") == 2, 30), api.get(path)["status"]


def test_everybody_should_be_allowed_to_read_the_version(installed: Deployment, api: Api, tmp_path: Path) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody"}}
    api.create("/api/v1/namespaces/default/serviceaccounts", account)
    write_token(api, installed.folder.kubeconfig("admin"), tmp_path / "nobody", "default", "nobody")
    with closing(Api(tmp_path / "nobody")) as nobody:
        public = nobody.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/kubeflow-trainer-public")
        assert public["data"]["kubeflow_trainer_version"]
        with pytest.raises(Refused, match="403"):
            nobody.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/kubeflow-trainer-config")


def test_who_may_edit_a_namespace_should_edit_trainjobs_and_read_runtimes(installed: Deployment, api: Api) -> None:
    with closing(Api(installed.folder.kubeconfig("user"))) as user:
        example = {**EXAMPLES[0], "metadata": {"name": "mine"}}
        create(user, TRAINJOBS, example)
        user.merge(f"{TRAINJOBS}/mine", {"metadata": {"labels": {"colour": "blue"}}})
        user.delete(f"{TRAINJOBS}/mine")
        runtimes = user.get("/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes")["items"]
        assert len(runtimes) == len(EXAMPLES)
        with pytest.raises(Refused, match="403"):
            user.delete("/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/torch-distributed")


@pytest.mark.parametrize("part", ["default", "prometheus", "flowschema", "runtimes"])
def test_kustomize_should_build_what_is_shipped(fresh: Folder, part: str) -> None:
    kubectl = Kubectl(programs().programs["kubectl"], fresh.kubeconfig("admin"))
    built = [each for each in yaml.load_all(kubectl("kustomize", str(CONFIG / part)), yaml.CSafeLoader) if each]
    wanted = {(each["kind"], each["metadata"]["name"]) for each in objects_of(CONFIG / part)}
    assert {(each["kind"], each["metadata"]["name"]) for each in built} == wanted


def test_leases_should_have_their_flow_schema_where_one_wants_it(installed: Deployment, api: Api) -> None:
    installed.kubectl("apply", "--server-side", "-k", str(CONFIG / "flowschema"))
    path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/kubeflow-trainer-leader-election"

    def conditions() -> dict[str, str]:
        return {each["type"]: each["status"] for each in api.get(path)["status"].get("conditions", ())}

    assert wait_for(lambda: conditions().get("Dangling") == "False", 20)


def test_an_installation_should_be_applied_again_without_a_change(installed: Deployment, api: Api) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/validator.trainer.kubeflow.org"
    before = api.get(path)
    assert before["webhooks"][0]["clientConfig"]["caBundle"]
    installed.install()
    assert api.get(path)["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_nothing_should_have_been_forbidden(installed: Deployment, fresh: Folder) -> None:
    assert forbidden_in(events_of(fresh.file("audit", "audit.log"))) == []
