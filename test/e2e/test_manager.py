"""`ktrainer manager` and `ktrainer webhook` as processes of their own."""

import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from clusters.api import Api, Object, Refused
from clusters.folder import Folder
from clusters.install import apply_all, established, path_of
from clusters.wait import wait_for
from ktrainer.api.resources import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS
from support.managers import NAMESPACE, Manager, ManagerSettings, installed_webhooks, running_manager

ELECTED: Object = {"leaderElection": {"leaderElect": True}}
LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/trainer.kubeflow.org"
SCRAPER = "metrics-reader"
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
POD = {"template": {"spec": {"containers": [{"name": "node", "image": "x"}]}}}
OUR_METRICS = (
    "ktrainer_event_loop_lag_seconds",
    "ktrainer_leader_election_reachable",
    "ktrainer_trainjob_run_seconds",
    "ktrainer_trainjob_time_to_running_seconds",
    "ktrainer_trainjobs",
)
UPSTREAM_METRICS = (
    "certwatcher_read_certificate_total",
    "controller_runtime_active_workers",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_time_seconds",
    "controller_runtime_reconcile_total",
    "controller_runtime_webhook_requests_total",
    "leader_election_master_status",
    "process_resident_memory_bytes",
    "rest_client_requests_total",
    "workqueue_adds_total",
    "workqueue_depth",
    "workqueue_longest_running_processor_seconds",
    "workqueue_queue_duration_seconds",
    "workqueue_retries_total",
    "workqueue_unfinished_work_seconds",
    "workqueue_work_duration_seconds",
)


@pytest.fixture
def no_crds(admin: Api, crds: list[Object]) -> Iterator[list[Object]]:
    """A cluster without our CRDs, which gets them back at the end."""
    for crd in crds:
        admin.delete(path_of(crd))
    assert wait_for(lambda: are_gone(admin, crds), 60)
    bare = [{**crd, "metadata": {"name": crd["metadata"]["name"]}} for crd in crds]
    for crd in bare:
        crd.pop("status", None)
    yield bare
    apply_all(admin, bare)
    assert wait_for(lambda: established(admin, bare), 30)


def are_gone(admin: Api, crds: list[Object]) -> bool:
    """Whether the CRDs are gone; lets go of runtimes that managers protected, for none is left to do it."""
    for resource in (TRAINING_RUNTIMES, CLUSTER_TRAINING_RUNTIMES):
        with suppress(Refused):  # their kind, or they, have just gone
            for each in admin.get(resource.path())["items"]:
                if each["metadata"].get("finalizers"):
                    path = resource.path(each["metadata"].get("namespace", ""), each["metadata"]["name"])
                    admin.merge(path, {"metadata": {"finalizers": None}})
    return not any(admin.exists(path_of(crd)) for crd in crds)


def holder(admin: Api) -> str:
    identity: str = admin.get(LEASE)["spec"].get("holderIdentity") or ""
    return identity


def free_lease(admin: Api) -> None:
    """Forget who led before, who may have been killed."""
    if admin.exists(LEASE):
        admin.delete(LEASE)


def settings_of(cluster: Folder, folder: Path, **settings: Any) -> ManagerSettings:
    return ManagerSettings(cluster.kubeconfig("admin"), folder=folder, **settings)


def test_a_manager_that_starts_before_the_crds_should_wait_and_say_so_once(
    cluster: Folder, admin: Api, no_crds: list[Object], tmp_path: Path
) -> None:
    manager = Manager(settings_of(cluster, tmp_path), tmp_path)
    reasons = [
        f"{each.plural}.{each.group} has not synced: the server does not know the kind; waiting for it"
        for each in (CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, TRAINJOBS)
    ]
    with installed_webhooks(admin, manager.ports):
        manager.start()
        try:
            assert wait_for(lambda: all(reason in manager.probe()[1] for reason in reasons), 30)
            assert manager.probe("healthz")[0] == 200
            apply_all(admin, no_crds)
            assert wait_for(lambda: established(admin, no_crds), 30)
            began = time.monotonic()
            manager.wait_ready()
            assert time.monotonic() - began <= 20
        finally:
            manager.crash()
    waits = manager.logged("the server does not know the kind; waiting for it")
    ours = [each["informer"] for each in waits if each["informer"].endswith("trainer.kubeflow.org")]
    assert sorted(ours) == sorted(set(ours))
    assert len(ours) == 3


def test_a_manager_that_is_stopped_while_it_waits_should_end_in_order_having_led_nothing(
    cluster: Folder, admin: Api, no_crds: list[Object], tmp_path: Path
) -> None:
    free_lease(admin)
    manager = Manager(settings_of(cluster, tmp_path, configuration=ELECTED), tmp_path)
    manager.start()
    try:
        assert wait_for(lambda: "has not synced" in manager.probe()[1], 30)
        began = time.monotonic()
        assert manager.stop() == 0
        assert time.monotonic() - began <= 30
    finally:
        manager.crash()
    assert not admin.exists(LEASE)
    assert not manager.logged("controller starts")


def test_a_first_install_should_be_ready_in_20_seconds_certificates_included(
    cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path
) -> None:
    secret = f"/api/v1/namespaces/{NAMESPACE}/secrets/kubeflow-trainer-webhook-cert"
    if admin.exists(secret):
        admin.delete(secret)
    began = time.monotonic()
    with running_manager(cluster, admin, tmp_path) as manager:
        assert time.monotonic() - began <= 20
        assert manager.probe("healthz") == (200, "ok")
        assert manager.probe("readyz") == (200, "ok")
        # The API server calls it, and trusts it.
        runtime: Object = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainingRuntime"}
        job = {"name": "node", "replicas": 2, "template": {"metadata": {"labels": {STEP: "trainer"}}, "spec": POD}}
        runtime |= {"metadata": {"name": "bad"}, "spec": {"template": {"spec": {"replicatedJobs": [job]}}}}
        with pytest.raises(Refused, match="replicas"):
            admin.create("/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainingruntimes", runtime)


def test_a_scrape_should_show_all_metrics_under_their_names(
    cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path
) -> None:
    free_lease(admin)
    with running_manager(cluster, admin, tmp_path, configuration=ELECTED) as manager:
        manager.wait_leading()
        status, text = manager.scrape()
    assert status == 200
    names = set(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))
    assert {*UPSTREAM_METRICS, *OUR_METRICS} <= names
    for controller in ("trainjob_controller", "trainingruntime_controller", "clustertrainingruntime_controller"):
        assert f'workqueue_depth{{controller="{controller}"' in text
    assert 'leader_election_master_status{name="trainer.kubeflow.org"} 1.0' in text
    assert "_created{" not in text


def test_metrics_should_be_plain_only_on_loopback(
    cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path
) -> None:
    configuration = {"metrics": {"secureServing": False}}
    with running_manager(cluster, admin, tmp_path, configuration=configuration) as manager:
        assert manager.scrape(secure=False)[0] == 200


def test_metrics_with_authorization_should_be_for_readers_alone(
    cluster: Folder, admin: Api, crds: list[Object], namespace: str, tmp_path: Path
) -> None:
    configuration = {"metrics": {"auth": {"enabled": True}}}
    with running_manager(cluster, admin, tmp_path, configuration=configuration) as manager:
        assert manager.scrape()[0] == 401
        assert manager.scrape("nonsense")[0] == 401
        token = token_of(admin, namespace, "stranger")
        assert manager.scrape(token)[0] == 403
        allow_scrapes(admin, namespace, SCRAPER)
        try:
            status, text = manager.scrape(token_of(admin, namespace, SCRAPER))
            assert status == 200
            assert "rest_client_requests_total" in text
        finally:
            for kind in ("clusterrolebindings", "clusterroles"):
                admin.delete(f"/apis/rbac.authorization.k8s.io/v1/{kind}/{namespace}-{SCRAPER}")


def token_of(admin: Api, namespace: str, name: str) -> str:
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    admin.create(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token: str = admin.create(f"{accounts}/{name}/token", request)["status"]["token"]
    return token


def allow_scrapes(admin: Api, namespace: str, name: str) -> None:
    group, metadata = "rbac.authorization.k8s.io", {"name": f"{namespace}-{name}"}
    rules = [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    role = {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
    admin.create(f"/apis/{group}/v1/clusterroles", role)
    ref = {"apiGroup": group, "kind": "ClusterRole", "name": metadata["name"]}
    binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": metadata, "roleRef": ref}
    admin.create(f"/apis/{group}/v1/clusterrolebindings", binding | {"subjects": subjects})


def test_of_two_managers_one_should_lead_and_the_other_follow_it(
    cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path
) -> None:
    free_lease(admin)
    first, second = (
        Manager(settings_of(cluster, tmp_path, configuration=ELECTED), tmp_path, name) for name in ("first", "second")
    )
    with installed_webhooks(admin, first.ports):
        try:
            first.start()
            first.wait_ready()
            assert wait_for(lambda: first.is_leading, 30)
            second.start()
            second.wait_ready()
            assert not second.is_leading
            assert first.identities()[holder(admin)] == first.agent
            began = time.monotonic()
            assert first.stop() == 0
            assert wait_for(lambda: second.is_leading, 5), second.tail()
            # The lease was given back: nobody had to wait until it expired.
            released = first.logged_at("gave the lease back")
            assert second.logged_at("became leader") - released < 5, time.monotonic() - began
            assert second.identities()[holder(admin)] == second.agent
        finally:
            first.crash()
            second.crash()


def test_sigterm_should_give_the_lease_back_and_end_the_program_in_order(
    cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path
) -> None:
    free_lease(admin)
    with running_manager(cluster, admin, tmp_path, configuration=ELECTED) as manager:
        assert wait_for(lambda: bool(holder(admin)), 30)
        assert manager.stop() == 0
        assert holder(admin) == ""
        assert manager.log()[-1]["event"] == "stopped"


def test_a_second_signal_should_end_the_program_at_once(
    cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path
) -> None:
    with running_manager(cluster, admin, tmp_path) as manager:
        manager.terminate()
        assert wait_for(lambda: bool(manager.logged("stopping")), 10)
        manager.terminate()
        assert manager.wait_ended(2) == 1


def test_a_manager_without_webhook_should_leave_admission_to_the_webhook(
    cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path
) -> None:
    manager = Manager(settings_of(cluster, tmp_path, flags=("--no-webhook",)), tmp_path, "controllers")
    with running_manager(cluster, admin, tmp_path, command="webhook", configuration=ELECTED) as webhook:
        manager.start()
        try:
            manager.wait_ready()
            assert "webhooks" not in manager.probe("readyz?verbose")[1]
            assert not manager.logged("admission server listens")
        finally:
            manager.crash()
        assert "webhooks ok" in webhook.probe("readyz?verbose")[1]
        assert not webhook.logged("waiting to become leader")
        assert not webhook.logged("controller starts")


def test_a_configuration_that_cannot_be_used_should_be_told_field_by_field(cluster: Folder, tmp_path: Path) -> None:
    configuration = {"webhook": {"port": 0}, "leaderElection": {"leaderElect": True, "leaseDuration": "1s"}, "x": 1}
    manager = Manager(settings_of(cluster, tmp_path, configuration=configuration), tmp_path)
    manager.start()
    assert manager.wait_ended() == 2
    told = [entry["event"] for entry in manager.log()]
    assert any("webhook.port: Invalid value: 0" in line for line in told)
    assert any("x: Forbidden: unknown field" in line for line in told)


def test_a_manager_that_was_killed_should_start_again(
    cluster: Folder, admin: Api, crds: list[Object], tmp_path: Path
) -> None:
    with running_manager(cluster, admin, tmp_path) as manager:
        manager.crash()
        assert manager.wait_ended() == -signal.SIGKILL
        manager.start()
        manager.wait_ready()
