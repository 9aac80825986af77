import base64

import pytest

from ktrainer.api.resources import SECRETS
from ktrainer.app.documents import run_now
from ktrainer.framework.watch import Concerns
from ktrainer.kube.identity import ObjectKey
from ktrainer.plugins.trainjobstatus import TrainJobStatusReporting
from support.training import container, dependencies, env_of, info_of, job, runtime, trainjob

AUDIENCE = "trainer.kubeflow.org/v1alpha1/namespaces/team-a/trainjobs/demo/status"
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "kubeflow-trainer-webhook-cert", "namespace": "kubeflow-system"},
    "data": {"ca.crt": base64.b64encode(b"-----BEGIN CERTIFICATE-----\n").decode()},
}


def test_all_containers_of_the_trainer_should_be_equipped_and_no_others() -> None:
    node = job("node", "trainer", container(), container("side"), pod={"initContainers": [container("pre")]})
    info = info_of(runtime(job("aux", None, container("a")), node))
    TrainJobStatusReporting(dependencies()).enforce_ml_policy(info, trainjob())
    aux, trainer = info.pod_sets
    for each in trainer.containers:
        assert env_of(each) == {
            "KUBEFLOW_TRAINER_SERVER_URL": (
                f"https://kubeflow-trainer-controller-manager.kubeflow-system.svc:10443/apis/{AUDIENCE}"
            ),
            "KUBEFLOW_TRAINER_SERVER_CA_CERT": "/var/run/secrets/kubeflow/trainer/ca.crt",
            "KUBEFLOW_TRAINER_SERVER_TOKEN": "/var/run/secrets/kubeflow/trainer/token",
        }
        mount = {"name": "kubeflow-trainer-token", "mountPath": "/var/run/secrets/kubeflow/trainer", "readOnly": True}
        assert each.mounts == [mount]
    assert env_of(trainer.init_containers[0]) == env_of(aux.containers[0]) == {}
    assert "volumes" not in aux.pod_spec


def test_the_volume_should_hold_a_token_for_this_job_and_the_certificate() -> None:
    info = info_of()
    TrainJobStatusReporting(dependencies()).enforce_ml_policy(info, trainjob())
    assert info.trainer is not None
    (volume,) = info.trainer.pod_spec["volumes"]
    assert volume["projected"]["sources"] == [
        {"serviceAccountToken": {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}},
        {"configMap": {"name": "demo-tls-config", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]


def test_the_certificate_should_be_copied_for_the_pods() -> None:
    (component,) = run_now(TrainJobStatusReporting(dependencies(SECRET)).build(info_of(), trainjob()))
    assert component.name == "demo-tls-config"
    assert component.body["data"] == {"ca.crt": "-----BEGIN CERTIFICATE-----\n"}


@pytest.mark.parametrize("current", ["new\n", "new"])
def test_after_a_rotation_the_former_certificates_should_be_trusted_too(current: str) -> None:
    data = {"ca.crt": current, "ca-prev.crt": "old\n", "ca.key": "key", "tls.crt": "serving", "tls.key": "key"}
    secret = {**SECRET, "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}}
    (component,) = run_now(TrainJobStatusReporting(dependencies(secret)).build(info_of(), trainjob()))
    assert component.body["data"] == {"ca.crt": "new\nold\n"}


def test_a_rotation_should_concern_all_that_have_not_finished() -> None:
    (watch,) = TrainJobStatusReporting(dependencies()).watches()
    assert (watch.resource, watch.concerns) == (SECRETS, Concerns.UNFINISHED)
    assert watch.key == ObjectKey("kubeflow-system", "kubeflow-trainer-webhook-cert")


@pytest.mark.parametrize("objects", [[], [{**SECRET, "data": {}}], [{**SECRET, "data": {"ca.crt": ""}}]])
def test_without_a_certificate_nothing_should_be_built(objects: list[dict[str, object]]) -> None:
    with pytest.raises(LookupError, match="kubeflow-system/kubeflow-trainer-webhook-cert has no ca"):
        run_now(TrainJobStatusReporting(dependencies(*objects)).build(info_of(), trainjob()))


def test_a_runtime_without_a_trainer_should_be_left_alone() -> None:
    info = info_of(runtime(job("aux", None, container("a"))))
    TrainJobStatusReporting(dependencies()).enforce_ml_policy(info, trainjob())
    assert env_of(info.pod_sets[0].containers[0]) == {}
