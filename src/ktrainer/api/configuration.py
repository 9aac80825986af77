"""The manager's configuration, `kind: Configuration` of `config.trainer.kubeflow.org/v1alpha1`, and its defaults.

`ktrainer.api.configurationfile` reads it from a file. A file that the original accepts is accepted here, so an empty
string stands for the default where it does there, and a rate of 0 for that of its client library.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticUseDefault

from ktrainer.api.address import Address
from ktrainer.api.duration import Duration
from ktrainer.api.model import Model
from ktrainer.api.schema import Count, Positive

API_VERSION: Final = "config.trainer.kubeflow.org/v1alpha1"


def _default_if_empty(value: object) -> object:
    if value == "":
        raise PydanticUseDefault
    return value


_EMPTY_IS_DEFAULT = BeforeValidator(_default_if_empty)
Text = Annotated[str, _EMPTY_IS_DEFAULT]
ServerAddress = Annotated[Address, _EMPTY_IS_DEFAULT]
Port = Annotated[int, Field(ge=1, le=65535)]
# client-go takes 0 for what is not told.
Rate = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(lambda qps: qps or 5.0)]
Burst = Annotated[Count, AfterValidator(lambda burst: burst or 10)]


class Webhook(Model):
    """The admission webhook."""

    port: Port = 9443
    """The port to listen on."""
    host: str = ""
    """The address to listen on; empty for all."""
    cert_dir: Text | None = None
    """The folder of tls.crt and tls.key where `certManagement.enable` is false; one under the temporary folder."""


class LeaderElection(Model):
    """Which of several managers leads."""

    leader_elect: bool = False
    """Whether there is an election; without it this manager leads at once."""
    resource_lock: Text = "leases"
    """What the managers compete for; there is nothing but leases."""
    resource_name: Text = "trainer.kubeflow.org"
    """The name of the lease."""
    resource_namespace: str = ""
    """The namespace of the lease; empty for that of the manager."""
    lease_duration: Duration = timedelta(seconds=15)
    """How long others wait for a leader that has gone silent."""
    renew_deadline: Duration = timedelta(seconds=10)
    """How long the leader tries to renew its lease before it gives up."""
    retry_period: Duration = timedelta(seconds=2)
    """The pause between two tries."""


class MetricsAuth(Model):
    """Who may read the metrics."""

    enabled: bool = False
    """Whether readers need a token with leave to read (TokenReview and SubjectAccessReview)."""


class Metrics(Model):
    """The server of the metrics."""

    bind_address: ServerAddress = ":8443"
    """Where to listen."""
    secure_serving: bool = True
    """Whether the server speaks TLS; without it, it listens on the loopback interface only, at the port of
    `bindAddress`, where nobody outside the pod reaches it."""
    auth: MetricsAuth = Field(default_factory=MetricsAuth)
    """Who may read the metrics."""


class Health(Model):
    """The server of the probes."""

    health_probe_bind_address: ServerAddress = ":8081"
    """Where to listen."""
    readiness_endpoint_name: Text = "readyz"
    """The path that tells whether the manager is ready, without its slash."""
    liveness_endpoint_name: Text = "healthz"
    """The path that tells whether the manager is alive, without its slash."""


class Controller(Model):
    """The controllers."""

    group_kind_concurrency: dict[str, Positive] = Field(default_factory=dict)
    """How many objects of a kind, such as TrainJob.trainer.kubeflow.org, are reconciled at once; 1 when absent, and 32
    TrainJobs at least, of which most wait for answers. A kind that is none of ours is warned of at start."""


class CertManagement(Model):
    """The certificate of the webhook."""

    enable: bool = True
    """Whether the manager makes and renews the certificate by itself."""
    webhook_service_name: Text = "kubeflow-trainer-controller-manager"
    """The Service that the certificate is for, in the manager's namespace."""
    webhook_secret_name: Text = "kubeflow-trainer-webhook-cert"  # noqa: S105 - the name of a Secret
    """The Secret that keeps the certificate, in the manager's namespace."""


class ClientConnection(Model):
    """How fast the manager asks the API server; for each kind of resource by itself."""

    qps: Rate = 50.0
    """Requests in a second, in the long run; 0 stands for 5."""
    burst: Burst = 100
    """Requests at once; 0 stands for 10."""


class StatusServer(Model):
    """The server that training pods report their progress to."""

    port: Port = 10443
    """The port to listen on."""
    qps: Rate = 5.0
    """Requests in a second that it makes to the API server, in the long run; 0 stands for 5."""
    burst: Burst = 10
    """Requests at once; 0 stands for 10."""


class Tls(Model):
    """The TLS settings of all servers. A version or cipher that is unknown is warned of at start, and not used."""

    min_version: str = ""
    """1.2 or 1.3; empty for the default."""
    cipher_suites: list[str] = Field(default_factory=list)
    """The ciphers that are allowed, by their names in the registry of IANA; empty for the library's choice."""
    next_protos: list[str] = Field(default_factory=list)
    """The protocols that are offered, such as h2; empty for http/1.1 alone."""


class Plugins(Model):
    """The plugins of the framework, by name."""

    disabled: list[str] = Field(default_factory=list)
    """Plugins that are switched off."""
    order: list[str] = Field(default_factory=list)
    """The plugins that run first, in this order; the others follow in theirs."""
    external: list[str] = Field(default_factory=list)
    """Plugins of other packages that are switched on: names of entry points of the group `ktrainer.plugins`."""


class Configuration(Model):
    """All that the file can say."""

    api_version: Literal["config.trainer.kubeflow.org/v1alpha1"] = API_VERSION
    kind: Literal["Configuration"] = "Configuration"
    webhook: Webhook = Field(default_factory=Webhook)
    leader_election: LeaderElection = Field(default_factory=LeaderElection)
    metrics: Metrics = Field(default_factory=Metrics)
    health: Health = Field(default_factory=Health)
    controller: Controller = Field(default_factory=Controller)
    cert_management: CertManagement = Field(default_factory=CertManagement)
    client_connection: ClientConnection = Field(default_factory=ClientConnection)
    status_server: StatusServer = Field(default_factory=StatusServer)
    feature_gates: dict[str, bool] = Field(default_factory=dict)
    """Gates that do not stand as they do by default; `ktrainer.api.gates` knows them."""
    tls: Tls = Field(default_factory=Tls)
    plugins: Plugins = Field(default_factory=Plugins)
