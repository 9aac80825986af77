from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from ktrainer.client.config.config import ConnectionConfig
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.admission.hook import AdmissionRequest, AdmissionResponse, Hook, allowed
from ktrainer.machinery.admission.server import ServerOptions
from ktrainer.machinery.cache.objects import CachedObject
from ktrainer.machinery.cache.source import View
from ktrainer.machinery.certificates.files import CertificateFolder
from ktrainer.machinery.certificates.pki import PkiPolicy
from ktrainer.machinery.certificates.secret import SECRETS
from ktrainer.machinery.operator import Operator, OperatorSettings
from ktrainer.machinery.servingcertificates import CertificateSettings, add_certificate_files, add_certificates
from ktrainer.machinery.webhooks import add_webhooks
from support.certificates import Issuer
from support.httpspeer import connected
from support.patience import Patient

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = ConnectionConfig("http://127.0.0.1:1")
"""An API server that is not there."""

pytestmark = pytest.mark.realtime


async def allow(_: AdmissionRequest) -> AdmissionResponse:
    return allowed()


async def test_hooks_should_be_served_with_the_certificate_in_the_folder(tmp_path: Path) -> None:
    issuer = Issuer()
    certificate, key = issuer.pair()
    (tmp_path / "tls.crt").write_bytes(certificate)
    (tmp_path / "tls.key").write_bytes(key)
    operator = Operator(NOBODY, OperatorSettings("test"), terminator=Patient())
    certificates = add_certificate_files(operator, CertificateFolder(tmp_path))
    options = ServerOptions("127.0.0.1", 0, drain_seconds=0)
    server = add_webhooks(operator, certificates, [Hook("/allow", allow, is_mutating=False)], options)
    running = asyncio.create_task(operator.run())
    await certificates.wait_ready()
    async with connected(await server.wait_listening(), issuer.authority):
        operator.request_stop()
    await running


async def test_hooks_should_wait_for_the_caches_and_readiness_for_a_certificate() -> None:
    operator = Operator(NOBODY, OperatorSettings("test"), terminator=Patient())
    operator.informer(View(SECRETS, CachedObject))
    settings = CertificateSettings(ObjectKey("test", "certificates"), [], PkiPolicy("ca", ("localhost",)))
    certificates = add_certificates(operator, settings)
    server = add_webhooks(operator, certificates, [Hook("/allow", allow, is_mutating=False)])
    running = asyncio.create_task(operator.run())
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(server.wait_listening(), 0.2)
    finding = await operator.readyz.run_one("certificates")
    assert finding.reason == "there is no certificate yet that the webhook configurations trust"
    for name in ("certwatcher_read_certificate_total", "certwatcher_read_certificate_errors_total"):
        assert operator.registry.get_sample_value(name), "there is no Secret to be had, and that is counted"
    operator.request_stop()
    await running
