"""Training pods report their progress to a real manager, with real tokens."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from clusters.api import Api
from clusters.wait import wait_for
from ktrainer.api.progress import audience_of, status_path_of
from ktrainer.kube.identity import ObjectKey
from support.managers import Manager, running_manager
from support.progress import issue_token, rfc3339_now, start_training
from support.realcluster import new_namespace
from support.waiting import Waiter, has_condition

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clusters.api import Object
    from clusters.folder import Folder

GATES = "TrainJobStatus=true"
INTERVAL_SECONDS = 5
SECRET = "/api/v1/namespaces/kubeflow-system/secrets/kubeflow-trainer-webhook-cert"
CERTIFICATE = "-----BEGIN CERTIFICATE-----"


@pytest.fixture(scope="module")
def manager(cluster: Folder, crds: list[Object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    with (
        closing(Api(cluster.kubeconfig("admin"))) as api,
        running_manager(cluster, api, tmp_path_factory.mktemp("manager"), gates=GATES) as manager,
    ):
        yield manager


def test_a_report_should_be_in_the_status_at_once(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    status = {
        "progressPercentage": 42,
        "estimatedRemainingSeconds": 30,
        "metrics": [{"name": "loss", "value": "0.25"}],
        "lastUpdatedTime": "2026-01-02T03:04:05.678Z",
    }
    stored = {**status, "lastUpdatedTime": "2026-01-02T03:04:05Z"}
    assert trainee.post({"trainerStatus": status}) == (200, {"trainerStatus": stored})
    assert trainee.status() == stored
    managers = {each["manager"]: each for each in admin.get(trainee.path)["metadata"]["managedFields"]}
    assert set(managers["trainer-status"]["fieldsV1"]["f:status"]) == {"f:trainerStatus"}


def test_nothing_should_be_written_for_nothing(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    assert trainee.post({}) == (200, {})
    assert trainee.status() == {}


def test_only_the_pods_of_a_trainjob_should_report_for_it(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    other = start_training(admin, waiter, manager.ports.progress, "other")
    impostor = admin.create(
        f"/api/v1/namespaces/{waiter.namespace}/pods",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "impostor", "labels": {"jobset.sigs.k8s.io/jobset-name": "demo"}},
            "spec": {"containers": [{"name": "a", "image": "registry.example/none"}]},
        },
    )
    for pod in (other.pod, impostor):
        code, answer = trainee.report(1, trainee.token(pod=pod))
        assert (code, answer["kind"], answer["reason"]) == (403, "Status", "Forbidden")
    assert trainee.status() == {}
    assert trainee.report(2)[0] == 200


def test_any_other_token_should_be_refused(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    server = admin.get("/.well-known/openid-configuration")["issuer"]
    audience = audience_of(trainee.key)
    tokens = {
        "no token": "",
        "no token at all": "not-a-token",
        "wrong audience": trainee.token(audience=server),
        "another TrainJob's audience": trainee.token(audience=audience.replace("demo", "other")),
        "not bound": issue_token(admin, None, audience, waiter.namespace),
    }
    with new_namespace(admin) as elsewhere:
        path = f"/api/v1/namespaces/{elsewhere}/serviceaccounts/default"
        Waiter(admin, elsewhere, waiter.folder).until(path, lambda _: True, "there is a service account")
        tokens["another namespace's"] = issue_token(admin, None, audience, elsewhere)
        codes = {name: trainee.report(1, token)[0] for name, token in tokens.items()}
        assert codes == dict.fromkeys(tokens, 403)
        foreign = status_path_of(ObjectKey(elsewhere, "demo"))
        assert trainee.post({}, path=foreign)[0] == 403, "the name of a TrainJob in another namespace"
    assert trainee.status() == {}


def test_what_is_not_there_should_not_be_found(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    none = ObjectKey(waiter.namespace, "none")
    token = trainee.token(audience=audience_of(none))
    assert trainee.post({}, token, status_path_of(none))[0] == 404
    assert trainee.post({}, path="/")[0] == 404


def test_what_does_not_fit_should_be_refused_with_its_path(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    code, answer = trainee.post({"trainerStatus": {"progressPercentage": 5}})
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "trainerStatus.lastUpdatedTime")
    code, answer = trainee.report(101)
    assert (code, answer["details"]["causes"][0]["field"]) == (422, "trainerStatus.progressPercentage")
    assert trainee.post(b" " * (64 * 1024) + b"{}")[0] == 413
    assert trainee.post(b" " * (64 * 1024 - 2) + b"{}") == (200, {})
    assert trainee.status() == {}


def test_the_largest_report_should_be_taken(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    metrics = [{"name": f"{number:064}", "value": "9" * 64} for number in range(256)]
    assert trainee.post({"trainerStatus": {"metrics": metrics, "lastUpdatedTime": rfc3339_now()}})[0] == 200
    assert trainee.status()["metrics"] == metrics


def test_of_many_reports_the_last_should_be_written(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    token = trainee.token()
    began = time.monotonic()
    codes = [trainee.report(number, token)[0] for number in range(5)]
    assert codes == [200, 429, 429, 429, 429]
    assert trainee.status()["progressPercentage"] == 0
    assert wait_for(lambda: trainee.status()["progressPercentage"] == 4, seconds=15)
    assert time.monotonic() - began >= INTERVAL_SECONDS


def test_a_finished_trainjob_should_take_no_report(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo", runs_for="8s")
    token = trainee.token()
    assert trainee.report(1, token)[0] == 200
    waiter.until(trainee.path, lambda job: has_condition(job, "Complete"), "the TrainJob is complete")
    code, answer = trainee.report(2, token)
    assert (code, answer["reason"]) == (409, "Conflict")
    assert trainee.status()["progressPercentage"] == 1


def test_what_is_kept_should_not_be_written_after_the_end(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    token = trainee.token()
    assert [trainee.report(number, token)[0] for number in (1, 2)] == [200, 429]
    now = rfc3339_now()
    ended = {"type": "Failed", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": now}
    body = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "status": {"conditions": [ended]}}
    admin.apply(f"{trainee.path}/status", {**body, "metadata": {"name": "demo"}}, manager="test")
    assert not wait_for(lambda: trainee.status()["progressPercentage"] == 2, seconds=INTERVAL_SECONDS + 3)


def test_the_controller_should_leave_reports_alone(admin: Api, waiter: Waiter, manager: Manager) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    assert trainee.report(7)[0] == 200
    admin.merge(trainee.path, {"spec": {"suspend": True}})
    waiter.until(trainee.path, lambda job: has_condition(job, "Suspended"), "it is suspended")
    assert trainee.status()["progressPercentage"] == 7
    admin.merge(trainee.path, {"spec": {"suspend": False}})
    waiter.until(trainee.path, lambda job: not has_condition(job, "Suspended"), "it is resumed")
    assert trainee.status()["progressPercentage"] == 7


def test_a_new_authority_should_reach_running_pods_beside_the_former_one(
    admin: Api, waiter: Waiter, manager: Manager
) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    path = f"/api/v1/namespaces/{waiter.namespace}/configmaps/demo-tls-config"
    before = admin.get(path)["data"]["ca.crt"]
    former = admin.get(SECRET)["data"]
    admin.merge(SECRET, {"data": {"ca.key": "", "ca.crt": "", "ca-prev.crt": former["ca.crt"]}})
    after = waiter.until(path, lambda found: found["data"]["ca.crt"] != before, "the pods are told of it")
    bundle = after["data"]["ca.crt"]
    assert bundle.count(CERTIFICATE) == before.count(CERTIFICATE) + 1
    assert before.splitlines()[1] in bundle
    # Whoever trusts both can talk to any replica, whichever certificate that has.
    trainee.context.load_verify_locations(cadata=bundle)
    assert wait_for(lambda: trainee.post({})[0] == 200, seconds=15)


def test_what_is_kept_should_be_written_before_a_manager_ends(
    cluster: Folder, admin: Api, waiter: Waiter, manager: Manager, tmp_path: Path
) -> None:
    trainee = start_training(admin, waiter, manager.ports.progress, "demo")
    token = trainee.token()
    assert [trainee.report(number, token)[0] for number in (1, 2)] == [200, 429]
    began = time.monotonic()
    assert manager.stop() == 0
    assert trainee.status()["progressPercentage"] == 2
    assert time.monotonic() - began < 40
    manager.start()
    manager.wait_ready()
