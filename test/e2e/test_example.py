"""The example controller as a newcomer runs it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from clusters.api import Api, Refused
from clusters.folder import Folder
from clusters.ports import free_ports
from clusters.wait import wait_for
from support.waiting import Waiter

EXAMPLE = Path(__file__).parents[2] / "examples" / "configmap_copier.py"
ASKS = "copier.example/to"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/configmap-copier"


@pytest.fixture
def copier(cluster: Folder, admin: Api, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The running example, on a port of its own."""
    (port,) = free_ports(1)
    webhooks = yaml.safe_load(EXAMPLE.with_suffix(".yaml").read_text().replace("9443", str(port)))
    admin.apply(WEBHOOKS, webhooks)
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig("admin")), "COPIER_PORT": str(port)}
    with (tmp_path / "log").open("wb") as log:
        program = subprocess.Popen([sys.executable, EXAMPLE], env=environment, stdout=log, stderr=log)
    try:
        assert wait_for(lambda: b"controller starts" in (tmp_path / "log").read_bytes(), 30)
        yield program
    finally:
        program.kill()
        program.wait()
        admin.delete(WEBHOOKS)


def test_a_configmap_that_asks_for_a_copy_should_get_one(
    copier: subprocess.Popen[bytes], admin: Api, namespace: str, waiter: Waiter
) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    metadata = {"name": "one", "annotations": {ASKS: "two"}}
    one = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"colour": "blue"}}
    made = admin.create(path, one)
    two = waiter.until(f"{path}/two", lambda item: item.get("data") == {"colour": "blue"}, "the copy is there")
    assert two["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    admin.merge(f"{path}/one", {"data": {"colour": "red"}})
    waiter.until(f"{path}/two", lambda item: item.get("data") == {"colour": "red"}, "the copy follows")
    with pytest.raises(Refused, match="it would copy itself"):
        admin.merge(f"{path}/one", {"metadata": {"annotations": {ASKS: "one"}}})


def test_the_example_should_be_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 60
