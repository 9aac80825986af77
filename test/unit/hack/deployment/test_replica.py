from pathlib import Path

import yaml

from clusters.folder import Folder
from deployment.replica import SHIPPED, Ports, build_configuration, build_replica
from ktrainer.api.configuration import Configuration
from ktrainer.api.configurationfile import parse_configuration
from ktrainer.api.gates import Gate

PORTS = Ports(webhook=1001, metrics=1002, health=1003, progress=1004)


def test_a_replica_should_have_the_shipped_configuration_on_addresses_of_loopback() -> None:
    shipped = parse_configuration(SHIPPED.read_text())
    changed = parse_configuration(yaml.safe_dump(build_configuration(PORTS)))
    assert isinstance(shipped, Configuration)
    assert isinstance(changed, Configuration)
    assert (changed.webhook.host, changed.webhook.port) == ("127.0.0.1", 1001)
    assert changed.metrics.bind_address == "127.0.0.1:1002"
    assert changed.health.health_probe_bind_address == "127.0.0.1:1003"
    assert changed.status_server.port == 1004
    for field in ("leader_election", "controller", "cert_management", "client_connection", "tls", "plugins"):
        assert getattr(changed, field) == getattr(shipped, field)
    assert changed.metrics.secure_serving == shipped.metrics.secure_serving


def test_a_replica_should_have_the_gates_that_are_asked_for() -> None:
    changed = parse_configuration(yaml.safe_dump(build_configuration(PORTS, {"RuntimeInUseProtection": False})))
    assert isinstance(changed, Configuration)
    assert changed.feature_gates == {Gate.RUNTIME_IN_USE_PROTECTION: False}


def test_a_replica_should_be_started_as_a_user_starts_it(tmp_path: Path) -> None:
    component = build_replica(Folder(tmp_path), tmp_path / "kubeconfig", PORTS)
    assert "manager" in component.command
    assert f"--kubeconfig={tmp_path / 'kubeconfig'}" in component.command
    (config,) = [each.removeprefix("--config=") for each in component.command if each.startswith("--config=")]
    assert yaml.safe_load(Path(config).read_text()) == build_configuration(PORTS)
    assert component.probe == "http://127.0.0.1:1003/readyz"
