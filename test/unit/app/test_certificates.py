from pathlib import Path
from typing import Any

import pytest

from ktrainer.api.configuration import CertManagement, Configuration, Webhook
from ktrainer.api.gates import Gate, open_gates
from ktrainer.app.certificates import POD_SETTLE_SECONDS, add_serving_certificate, folder_of
from ktrainer.client.config.config import ConnectionConfig
from ktrainer.machinery.certificates.rotator import SETTLE_SECONDS
from ktrainer.machinery.operator import Operator, OperatorSettings
from ktrainer.machinery.runnable import Stage

NOBODY = ConnectionConfig("http://127.0.0.1:1")
"""An API server that is not there."""


@pytest.mark.parametrize(
    "given, folder",
    [("/not/there", "/not/there"), ("", "/tmp"), (None, "/tmp")],  # noqa: S108 - nothing is written there
)
def test_files_should_be_where_the_configuration_says_or_where_the_original_looks(
    monkeypatch: pytest.MonkeyPatch, given: str | None, folder: str
) -> None:
    if given is None:
        monkeypatch.delenv("TMPDIR", raising=False)
    else:
        monkeypatch.setenv("TMPDIR", given)
    assert folder_of(Configuration(webhook=Webhook(cert_dir="/certs"))) == Path("/certs")
    assert folder_of(Configuration()) == Path(folder, "k8s-webhook-server", "serving-certs")


@pytest.mark.parametrize(
    "is_own, reason",
    [
        (True, "there is no certificate yet that the webhook configurations trust"),
        (False, "there is no usable certificate yet in /certs"),
    ],
)
async def test_the_configuration_should_say_where_the_certificate_comes_from(is_own: bool, reason: str) -> None:
    operator = Operator(NOBODY, OperatorSettings("test"))
    configuration = Configuration(webhook=Webhook(cert_dir="/certs"), cert_management=CertManagement(enable=is_own))
    add_serving_certificate(operator, configuration, "kubeflow-system", open_gates())
    finding = await operator.readyz.run_one("certificates")
    assert finding.reason == reason
    await operator.connection.close()


@pytest.mark.parametrize("has_pods, seconds", [(True, POD_SETTLE_SECONDS), (False, SETTLE_SECONDS)])
async def test_a_new_authority_should_wait_for_training_pods_where_they_call_us(has_pods: bool, seconds: float) -> None:
    operator = Operator(NOBODY, OperatorSettings("test"))
    gates = open_gates({Gate.TRAINJOB_STATUS: has_pods})
    add_serving_certificate(operator, Configuration(), "kubeflow-system", gates)
    (rotator,) = (
        _owner_of(each.run) for each in operator.manager._runnables[Stage.BACKGROUND] if each.name == "certificates"
    )
    assert rotator._parts.settle_seconds == seconds
    await operator.connection.close()


def _owner_of(method: Any) -> Any:
    return method.__self__
