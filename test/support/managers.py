"""The real `python -m ktrainer manager` as a process, on free ports of loopback, against a real cluster.

    with running_manager(cluster, admin, tmp_path) as manager: ...

or, for a whole module of tests, the fixture `manager`. The webhook configurations of `config/webhook` are installed
with URLs in place of the Service, and taken away at the end, so that a cluster without a manager takes all objects.
"""

from __future__ import annotations

import http.client
import ssl
import sys
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from clusters.api import Api, Refused
from clusters.install import path_of
from clusters.ports import LOOPBACK, free_ports
from clusters.wait import wait_for
from support.replica import Replica, Settings
from support.roles import installed_roles

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clusters.api import Object
    from clusters.folder import Folder

NAMESPACE = "kubeflow-system"
READY_SECONDS = 60.0
"""How long a manager may take to become ready on a busy machine."""

_WEBHOOKS = Path(__file__).parents[2] / "config" / "webhook"
_PROGRAM = (sys.executable, "-P", "-m", "ktrainer")


@dataclass(frozen=True)
class Ports:
    """Where a manager listens."""

    webhook: int
    metrics: int
    health: int
    progress: int

    @classmethod
    def free(cls) -> Ports:
        """Ports that nobody uses."""
        return cls(*free_ports(4))


@dataclass(frozen=True)
class ManagerSettings(Settings):
    """How a manager is started."""

    namespace: str = NAMESPACE
    command: str = "manager"
    ports: Ports = field(default_factory=Ports.free)
    configuration: Object = field(default_factory=dict)
    """What the file says beyond the ports; it is merged over them."""
    gates: str = ""
    flags: tuple[str, ...] = ()
    folder: Path = Path()
    """Where the configuration file is written."""

    def arguments(self, agent: str) -> list[str]:
        """Write the configuration file, and return the command line."""
        path = self.folder / f"{agent}.yaml"
        path.write_text(yaml.safe_dump(_merged(self._document(), self.configuration)))
        gates = [f"--feature-gates={self.gates}"] if self.gates else []
        return [self.command, f"--config={path}", f"--kubeconfig={self.kubeconfig}", *gates, *self.flags]

    def _document(self) -> Object:
        return {
            "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
            "kind": "Configuration",
            "webhook": {"host": LOOPBACK, "port": self.ports.webhook},
            "metrics": {"bindAddress": f"{LOOPBACK}:{self.ports.metrics}"},
            "health": {"healthProbeBindAddress": f"{LOOPBACK}:{self.ports.health}"},
            "statusServer": {"port": self.ports.progress},
            # As the shipped file has it.
            "controller": {"groupKindConcurrency": {"TrainJob.trainer.kubeflow.org": 5}},
        }


class Manager(Replica):
    """One place in which a manager runs; `kill` ends it at once, and `start` starts the next."""

    def __init__(self, settings: ManagerSettings, folder: Path, name: str = "manager") -> None:
        super().__init__(settings, folder, name, _PROGRAM)
        self.ports = settings.ports

    def probe(self, endpoint: str = "readyz") -> tuple[int, str]:
        """Ask a health endpoint; the status is 0 where nobody answers."""
        try:
            with closing(http.client.HTTPConnection(LOOPBACK, self.ports.health, timeout=10)) as connection:
                connection.request("GET", f"/{endpoint}")
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
        except OSError as error:
            return 0, str(error)

    def scrape(self, token: str = "", *, secure: bool = True) -> tuple[int, str]:
        """Read the metrics."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        with closing(self._metrics_connection(secure=secure)) as connection:
            connection.request("GET", "/metrics", headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until it is ready; raises AssertionError with the end of its log."""
        is_ready = wait_for(lambda: self.probe()[0] == 200 or not self.is_running, seconds)
        assert is_ready, f"not ready after {seconds:g} s: {self.probe()[1]}\n{self.tail()}"
        assert self.is_running, f"{self.agent} has ended:\n{self.tail()}"

    def wait_leading(self, seconds: float = READY_SECONDS) -> None:
        """Wait until its controllers work; raises AssertionError with the end of its log."""
        assert wait_for(lambda: bool(self.logged("controller starts")), seconds), f"it does not lead:\n{self.tail()}"

    def wait_ended(self, seconds: float = 45.0) -> int:
        """Wait for its end; return its exit code."""
        assert wait_for(lambda: not self.is_running, seconds), f"it still runs:\n{self.tail()}"
        assert self._process is not None
        return self._process.returncode

    def stop(self) -> int:
        """Ask it to stop, wait for its end, and return its exit code."""
        self.terminate()
        return self.wait_ended()

    def crash(self) -> None:
        """End it at once, as `kill -9` does, and wait until it is gone; nothing happens where there is none."""
        self.kill()
        if self._process is not None:
            self._process.wait(10)

    def _metrics_connection(self, *, secure: bool) -> http.client.HTTPConnection:
        if not secure:
            return http.client.HTTPConnection(LOOPBACK, self.ports.metrics, timeout=10)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(LOOPBACK, self.ports.metrics, timeout=10, context=context)


@contextmanager
def running_manager(
    cluster: Folder, api: Api, folder: Path, *, user: str = "trainer", hooked: bool = True, **settings: Any
) -> Iterator[Manager]:
    """Install roles and webhooks, start a manager, wait until it is ready, and leave nothing of them behind.

    `settings` are those of ManagerSettings; `user` is whose kubeconfig it has: by default it may do what the shipped
    roles allow, and no more. Where it is not `hooked`, there is no admission: the API server takes all objects.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if not hooked:
        settings["flags"] = (*settings.get("flags", ()), "--no-webhook")
    manager = Manager(ManagerSettings(cluster.kubeconfig(user), folder=folder, **settings), folder)
    with installed_roles(cluster, api), installed_webhooks(api, manager.ports) if hooked else nullcontext():
        manager.start()
        try:
            manager.wait_ready()
            yield manager
        finally:
            manager.crash()


@contextmanager
def installed_webhooks(api: Api, ports: Ports) -> Iterator[None]:
    """Install the shipped webhook configurations, with URLs on loopback, and remove them at the end."""
    configurations = webhook_configurations(ports.webhook, _bundle(api))
    try:
        for configuration in configurations:
            api.apply(path_of(configuration), configuration)
        yield
    finally:
        for configuration in configurations:
            _delete(api, path_of(configuration))


def webhook_configurations(port: int, bundle: str | None = None) -> list[Object]:
    """The shipped webhook configurations, rewritten to a port of loopback, with the authority that they trust."""
    found: list[Object] = []
    for path in sorted(_WEBHOOKS.glob("*.yaml")):
        documents = yaml.load_all(path.read_text(), yaml.CSafeLoader)
        found += [each for each in documents if each and each["kind"].endswith("WebhookConfiguration")]
    for hook in (hook for configuration in found for hook in configuration["webhooks"]):
        service = hook["clientConfig"].pop("service")
        hook["clientConfig"]["url"] = f"https://{LOOPBACK}:{port}{service['path']}"
        if bundle:
            hook["clientConfig"]["caBundle"] = bundle
    return found


@pytest.fixture(scope="module")
def manager(cluster: Folder, crds: list[Object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """A manager with the defaults, ready, for all tests of a module."""
    with (
        closing(Api(cluster.kubeconfig("admin"))) as api,
        running_manager(cluster, api, tmp_path_factory.mktemp("manager")) as manager,
    ):
        yield manager


@pytest.fixture(scope="module")
def unhooked(cluster: Folder, crds: list[Object], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Manager]:
    """A manager without admission, ready, for all tests of a module: what it meets was never judged."""
    with (
        closing(Api(cluster.kubeconfig("admin"))) as api,
        running_manager(cluster, api, tmp_path_factory.mktemp("manager"), hooked=False) as manager,
    ):
        yield manager


def _merged(base: Object, over: Object) -> Object:
    merged = dict(base)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = _merged(merged[key], value) if both else value
    return merged


def _bundle(api: Api) -> str | None:
    """The authority that an earlier manager of this cluster made: what it has put there is not waited for again."""
    try:
        secret = api.get(f"/api/v1/namespaces/{NAMESPACE}/secrets/kubeflow-trainer-webhook-cert")
    except Refused as refusal:
        if refusal.code != 404:
            raise
        return None
    bundle: str | None = secret.get("data", {}).get("ca.crt")
    return bundle


def _delete(api: Api, path: str) -> None:
    try:
        api.delete(path)
    except Refused as refusal:
        if refusal.code != 404:
            raise
