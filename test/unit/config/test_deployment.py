"""What `kubectl apply -k config/default` installs, read from the files; the end-to-end tests install it."""

from pathlib import Path

import pytest

import ktrainer
from ktrainer.api.configuration import Configuration
from ktrainer.api.configurationfile import parse_configuration
from ktrainer.machinery.manager import GRACE_SECONDS
from ktrainer.machinery.serving.connections import DRAIN_SECONDS
from support.manifests import CONFIG, Object, files_of, find, kustomization_of, objects_of
from support.validity import assert_valid

NAME = "kubeflow-trainer-controller-manager"
FOLDERS = sorted(path.parent for path in CONFIG.glob("*/kustomization.yaml"))
FOREIGN_GROUPS = ("trainer.kubeflow.org", "monitoring.coreos.com")


@pytest.fixture(scope="module")
def installed() -> list[Object]:
    return objects_of(CONFIG / "default")


@pytest.fixture(scope="module")
def configuration(installed: list[Object]) -> Configuration:
    text = find(installed, "ConfigMap", "kubeflow-trainer-config")["data"]["controller_manager_config.yaml"]
    parsed = parse_configuration(text)
    assert isinstance(parsed, Configuration), parsed
    return parsed


@pytest.fixture(scope="module")
def pod(installed: list[Object]) -> Object:
    template: Object = find(installed, "Deployment", NAME)["spec"]["template"]
    return template


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_kustomization_should_install_every_file_beside_it(folder: Path) -> None:
    generated = [
        folder / name for each in kustomization_of(folder).get("configMapGenerator", ()) for name in each["files"]
    ]
    settings = [folder / name for name in kustomization_of(folder).get("configurations", ())]
    assert {*files_of(folder), *generated, *settings, folder / "kustomization.yaml"} == set(folder.glob("*"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_installed_should_be_valid_for_kubernetes(folder: Path) -> None:
    for each in objects_of(folder):
        if not each["apiVersion"].startswith(FOREIGN_GROUPS):
            assert_valid(each)


@pytest.mark.parametrize(
    "kind, name",
    [
        ("Namespace", "kubeflow-system"),
        ("Service", NAME),
        ("Deployment", NAME),
        ("ServiceAccount", NAME),
        ("ClusterRole", NAME),
        ("ClusterRoleBinding", NAME),
        ("Role", NAME),
        ("RoleBinding", NAME),
        ("PodDisruptionBudget", NAME),
        ("NetworkPolicy", NAME),
        ("ConfigMap", "kubeflow-trainer-config"),
        ("ConfigMap", "kubeflow-trainer-public"),
        ("Role", "kubeflow-trainer-public"),
        ("RoleBinding", "kubeflow-trainer-public"),
    ],
)
def test_other_software_should_find_things_under_their_names(installed: list[Object], kind: str, name: str) -> None:
    assert find(installed, kind, name)


def test_nothing_should_be_installed_outside_the_managers_namespace(installed: list[Object]) -> None:
    given = {each["metadata"].get("namespace", "kubeflow-system") for each in installed}
    spread = {kustomization_of(folder).get("namespace") for folder in FOLDERS if folder.name in {"rbac", "manager"}}
    assert given | spread == {"kubeflow-system"}


def test_everybody_should_be_allowed_to_read_the_version_and_nothing_else(installed: list[Object]) -> None:
    assert find(installed, "ConfigMap", "kubeflow-trainer-public")["data"] == {"kubeflow_trainer_version": "v2.3.0"}
    rules = find(installed, "Role", "kubeflow-trainer-public")["rules"]
    assert rules == [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["kubeflow-trainer-public"], "verbs": ["get"]}
    ]
    (subject,) = find(installed, "RoleBinding", "kubeflow-trainer-public")["subjects"]
    assert (subject["kind"], subject["name"]) == ("Group", "system:authenticated")


def test_the_shipped_configuration_should_be_what_the_documents_say(configuration: Configuration) -> None:
    assert configuration.leader_election.leader_elect
    assert configuration.controller.group_kind_concurrency == {
        "TrainJob.trainer.kubeflow.org": 5,
        "TrainingRuntime.trainer.kubeflow.org": 1,
        "ClusterTrainingRuntime.trainer.kubeflow.org": 1,
    }
    defaults = Configuration()
    for field in ("webhook", "metrics", "health", "cert_management", "client_connection", "status_server", "tls"):
        assert getattr(configuration, field) == getattr(defaults, field)
    without = configuration.leader_election.model_copy(update={"leader_elect": False})
    assert without == defaults.leader_election


def test_ports_should_lead_from_the_service_to_the_servers(
    installed: list[Object], pod: Object, configuration: Configuration
) -> None:
    (container,) = pod["spec"]["containers"]
    listening = {each["name"]: each["containerPort"] for each in container["ports"]}
    assert listening == {
        "webhook": configuration.webhook.port,
        "metrics": int(configuration.metrics.bind_address.removeprefix(":")),
        "progress": configuration.status_server.port,
        "health": int(configuration.health.health_probe_bind_address.removeprefix(":")),
    }
    ports = find(installed, "Service", NAME)["spec"]["ports"]
    assert {each["port"]: each["targetPort"] for each in ports} == {443: "webhook", 8443: "metrics", 10443: "progress"}
    (ingress,) = find(installed, "NetworkPolicy", NAME)["spec"]["ingress"]
    # Not by their names: the original has the labels that the policy selects by, and other names for these ports.
    assert {each["port"] for each in ingress["ports"]} == set(listening.values())


def test_selectors_should_find_the_managers_pods(installed: list[Object], pod: Object) -> None:
    labels = pod["metadata"]["labels"].items()
    selectors = [
        find(installed, "Deployment", NAME)["spec"]["selector"]["matchLabels"],
        find(installed, "Service", NAME)["spec"]["selector"],
        find(installed, "PodDisruptionBudget", NAME)["spec"]["selector"]["matchLabels"],
        find(installed, "NetworkPolicy", NAME)["spec"]["podSelector"]["matchLabels"],
        *[each["labelSelector"]["matchLabels"] for each in pod["spec"]["topologySpreadConstraints"]],
    ]
    for selector in selectors:
        assert selector
        assert selector.items() <= labels
    (monitor,) = objects_of(CONFIG / "prometheus")
    service = find(installed, "Service", NAME)
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] in {each["name"] for each in service["spec"]["ports"]}


def test_one_replica_should_always_answer(installed: list[Object]) -> None:
    deployment = find(installed, "Deployment", NAME)["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    budget = find(installed, "PodDisruptionBudget", NAME)["spec"]
    # The original has the labels that the budget selects by, and a single replica, which could never be evicted.
    assert (budget["maxUnavailable"], "minAvailable" in budget) == (1, False)


def test_a_pod_should_have_the_time_to_stop_in_order(pod: Object) -> None:
    assert DRAIN_SECONDS < GRACE_SECONDS < pod["spec"]["terminationGracePeriodSeconds"]


def test_a_pod_should_pass_as_restricted(pod: Object) -> None:
    spec = pod["spec"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    (container,) = spec["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"limits", "requests"} <= container["resources"].keys()
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    assert all("configMap" in each for each in spec["volumes"])


def test_the_image_should_be_of_this_version(pod: Object) -> None:
    (image,) = kustomization_of(CONFIG / "default")["images"]
    assert pod["spec"]["containers"][0]["image"] == image["name"]
    assert image["newTag"] == ktrainer.__version__


def test_probes_should_ask_where_the_manager_answers(pod: Object, configuration: Configuration) -> None:
    (container,) = pod["spec"]["containers"]
    paths = {name: container[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    alive = f"/{configuration.health.liveness_endpoint_name}"
    ready = f"/{configuration.health.readiness_endpoint_name}"
    assert paths == {"startupProbe": alive, "livenessProbe": alive, "readinessProbe": ready}
