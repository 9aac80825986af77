from datetime import timedelta

import pytest
import yaml

from ktrainer.api.configuration import Configuration, LeaderElection
from ktrainer.api.configurationfile import parse_configuration
from ktrainer.api.decoding import encode
from ktrainer.machinery.serving.address import parse_address

# The settings that a cluster of the original runs with.
SHIPPED = """
apiVersion: config.trainer.kubeflow.org/v1alpha1
kind: Configuration
health:
  healthProbeBindAddress: :8081
  readinessEndpointName: readyz
  livenessEndpointName: healthz
metrics:
  bindAddress: :8443
  secureServing: true
webhook:
  port: 9443
  host: ""
leaderElection:
  leaderElect: true
  resourceName: trainer.kubeflow.org
  resourceNamespace: ""
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
controller:
  groupKindConcurrency:
    TrainJob.trainer.kubeflow.org: 5
    TrainingRuntime.trainer.kubeflow.org: 1
    ClusterTrainingRuntime.trainer.kubeflow.org: 1
certManagement:
  enable: true
  webhookServiceName: kubeflow-trainer-controller-manager
  webhookSecretName: kubeflow-trainer-webhook-cert
clientConnection:
  qps: 50
  burst: 100
statusServer:
  port: 10443
  qps: 5
  burst: 10
"""


GATES = '"TrainJobStatus", "RuntimeInUseProtection", "ConditionsWhileRunning", "AllAlpha", "AllBeta"'


def accepted(text: str) -> Configuration:
    configuration = parse_configuration(text)
    assert isinstance(configuration, Configuration), configuration
    return configuration


def refused(text: str) -> list[str]:
    errors = parse_configuration(text)
    assert isinstance(errors, list)
    return sorted(map(str, errors))


def test_the_shipped_file_should_be_read_in_full() -> None:
    configuration = accepted(SHIPPED)
    assert configuration.leader_election.leader_elect is True
    assert configuration.leader_election.lease_duration == timedelta(seconds=15)
    assert configuration.controller.group_kind_concurrency["TrainJob.trainer.kubeflow.org"] == 5
    assert encode(configuration) == yaml.safe_load(SHIPPED)


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "---\n", "null", "kind: Configuration", SHIPPED])
def test_the_defaults_should_be_those_of_the_shipped_file_but_for_the_election(text: str) -> None:
    configuration = accepted(text)
    expected = accepted(SHIPPED)
    for section in ("webhook", "metrics", "health", "cert_management", "client_connection", "status_server", "tls"):
        assert getattr(configuration, section) == getattr(expected, section)
    assert configuration.leader_election.model_copy(update={"leader_elect": True}) == expected.leader_election


def test_without_an_election_in_the_file_there_should_be_none() -> None:
    assert accepted("").leader_election.leader_elect is False
    assert accepted("leaderElection: {}").leader_election.leader_elect is False
    assert accepted("leaderElection: {resourceName: a}").leader_election.leader_elect is False


def test_everything_of_ours_should_be_read() -> None:
    text = """
    webhook: {certDir: /certs}
    metrics: {auth: {enabled: true}}
    featureGates: {TrainJobStatus: true, RuntimeInUseProtection: false, AllAlpha: true}
    tls: {minVersion: "1.3", cipherSuites: [TLS_AES_128_GCM_SHA256], nextProtos: [h2, http/1.1]}
    plugins: {disabled: [volcano], order: [torch, jobset], external: [acme]}
    """
    configuration = accepted(text)
    assert encode(configuration) == {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        **yaml.safe_load(text),
    }


@pytest.mark.parametrize(
    "text",
    [
        # What the original defaults, where it is empty.
        'metrics: {bindAddress: ""}\nhealth: {healthProbeBindAddress: "", readinessEndpointName: ""}',
        'certManagement: {webhookServiceName: "", webhookSecretName: ""}',
        "webhook: null\nleaderElection:\nmetrics: {secureServing: null}\ncontroller: {groupKindConcurrency: null}",
        # What is not looked at.
        "leaderElection: {leaderElect: false, leaseDuration: 1s, renewDeadline: 5s, resourceLock: endpoints}",
        "controller: {groupKindConcurrency: {Pod: 3}}",
        "tls: {minVersion: '9.9', cipherSuites: [NONE]}",
        'metrics: {bindAddress: "0"}\nhealth: {healthProbeBindAddress: "0"}',
        "clientConnection: {qps: 0, burst: 0}\nstatusServer: {qps: 2.5}",
        'leaderElection: {leaderElect: true, resourceName: "", resourceLock: ""}',
        "leaderElection: {leaderElect: true, leaseDuration: 1m30s, renewDeadline: 1m, retryPeriod: 500ms}",
    ],
)
def test_what_the_original_accepts_should_be_accepted(text: str) -> None:
    configuration = accepted(text)
    assert configuration.metrics.bind_address in {":8443", "0"}
    assert configuration.leader_election.resource_name == "trainer.kubeflow.org"


@pytest.mark.parametrize("text", [":https", "localhost:http", ":", "localhost:", "[localhost]:0"])
def test_an_address_that_is_accepted_should_be_one_to_the_servers(text: str) -> None:
    configuration = accepted(f"metrics: {{bindAddress: '{text}'}}\nhealth: {{healthProbeBindAddress: '{text}'}}")
    assert parse_address(configuration.metrics.bind_address) is not None
    assert parse_address(configuration.health.health_probe_bind_address) is not None


def test_a_rate_of_zero_should_be_that_of_the_originals_client() -> None:
    zero = "{qps: 0, burst: 0}"
    configuration = accepted(f"clientConnection: {zero}\nstatusServer: {zero}")
    for section in (configuration.client_connection, configuration.status_server):
        assert (section.qps, section.burst) == (5, 10)


@pytest.mark.parametrize(
    ("text", "errors"),
    [
        ("spam: 1", ["spam: Forbidden: unknown field"]),
        ("webhook: {Port: 1}", ["webhook.Port: Forbidden: unknown field"]),
        ("webhook: {cert_dir: a}", ["webhook.cert_dir: Forbidden: unknown field"]),
        ("webhook: {port: 0}", ["webhook.port: Invalid value: 0: must be greater than or equal to 1"]),
        ("webhook: {port: 65536}", ["webhook.port: Invalid value: 65536: must be less than or equal to 65535"]),
        (
            "metrics: {secureServing: false, auth: {enabled: true}}",
            ['metrics.auth.enabled: Invalid value: "true": needs secureServing, lest tokens go in plain text'],
        ),
        ("statusServer: {port: '1'}", ['statusServer.port: Invalid value: "1": must be of type integer']),
        (
            "clientConnection: {qps: -1}",
            ["clientConnection.qps: Invalid value: -1: must be greater than or equal to 0"],
        ),
        ("clientConnection: {qps: many}", ['clientConnection.qps: Invalid value: "many": must be of type number']),
        ("statusServer: {burst: -1}", ["statusServer.burst: Invalid value: -1: must be greater than or equal to 0"]),
        (
            "controller: {groupKindConcurrency: {a: 0}}",
            ["controller.groupKindConcurrency.a: Invalid value: 0: must be greater than or equal to 1"],
        ),
        ("metrics: {secureServing: 1}", ["metrics.secureServing: Invalid value: 1: must be of type boolean"]),
        (
            "metrics: {bindAddress: '8443'}",
            ['metrics.bindAddress: Invalid value: "8443": must be host:port, :port, or 0 to switch the server off'],
        ),
        (
            "metrics: {bindAddress: ':httpx'}",
            ['metrics.bindAddress: Invalid value: ":httpx": must be host:port, :port, or 0 to switch the server off'],
        ),
        (
            "leaderElection: {leaseDuration: 15}",
            ["leaderElection.leaseDuration: Invalid value: 15: must be a duration such as 15s or 1m30s"],
        ),
        (
            "leaderElection: {leaseDuration: soon}",
            ['leaderElection.leaseDuration: Invalid value: "soon": must be a duration such as 15s or 1m30s'],
        ),
        (
            "leaderElection: {leaderElect: true, resourceLock: endpoints}",
            ['leaderElection.resourceLock: Unsupported value: "endpoints": supported values: "leases"'],
        ),
        (
            "leaderElection: {leaderElect: true, leaseDuration: 10s}",
            ['leaderElection.leaseDuration: Invalid value: "10s": must be greater than renewDeadline'],
        ),
        (
            "leaderElection: {leaderElect: true, retryPeriod: 9s}",
            ['leaderElection.renewDeadline: Invalid value: "10s": must be greater than 1.2 times retryPeriod'],
        ),
        (
            "leaderElection: {leaderElect: true, retryPeriod: 0s}",
            ['leaderElection.retryPeriod: Invalid value: "0s": must be greater than zero'],
        ),
        (
            "featureGates: {Warp: true}",
            [f'featureGates: Unsupported value: "Warp": supported values: {GATES}'],
        ),
        (
            "featureGates: {TrainJobStatus: on please}",
            ['featureGates.TrainJobStatus: Invalid value: "on please": must be of type boolean'],
        ),
        (
            "plugins: {disabled: [jobset]}",
            ['plugins.disabled: Invalid value: "jobset": without it no TrainJob can run'],
        ),
        ("plugins: {order: [a, b, a]}", ['plugins.order[2]: Duplicate value: "a"']),
        (
            "apiVersion: v1\nkind: Config",
            [
                'apiVersion: Unsupported value: "v1": supported values: "config.trainer.kubeflow.org/v1alpha1"',
                'kind: Unsupported value: "Config": supported values: "Configuration"',
            ],
        ),
        ("- 1", ['Invalid value: "array": must be of type object']),
        ("{}\n---\n{}", ["Invalid value: 2: must be one document"]),
    ],
)
def test_what_is_wrong_should_be_refused_with_its_path(text: str, errors: list[str]) -> None:
    assert refused(text) == errors


@pytest.mark.parametrize("text", ["webhook: [", "webhook: {port: 1}\nwebhook: {port: 2}"])
def test_what_is_no_yaml_should_be_refused(text: str) -> None:
    (error,) = refused(text)
    assert "not YAML" in error


def test_a_duration_should_be_given_in_python_as_one() -> None:
    election = LeaderElection(lease_duration=timedelta(minutes=1))
    assert encode(election) == {"leaseDuration": "1m0s"}
