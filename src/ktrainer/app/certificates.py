"""The manager's serving certificate, which webhook, progress server and metrics share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ktrainer.api.configuration import CertManagement
from ktrainer.api.gates import Gate
from ktrainer.api.resources import SECRETS
from ktrainer.app.tls import decide_tls
from ktrainer.kube.access import Access
from ktrainer.kube.identity import ObjectKey
from ktrainer.machinery.certificates.cabundle import MUTATING, VALIDATING
from ktrainer.machinery.certificates.cabundle import Configuration as WebhookConfiguration
from ktrainer.machinery.certificates.files import CertificateFolder
from ktrainer.machinery.certificates.pki import PkiPolicy, service_names
from ktrainer.machinery.certificates.rotator import SETTLE_SECONDS
from ktrainer.machinery.servingcertificates import CertificateSettings, add_certificate_files, add_certificates
from ktrainer.webhook.registration import DEFAULTER, VALIDATOR

if TYPE_CHECKING:
    from collections.abc import Collection

    from ktrainer.api.configuration import Configuration
    from ktrainer.machinery.operator import Operator
    from ktrainer.machinery.servingcertificates import Certificates

AUTHORITY: Final = "kubeflow-trainer-ca"
"""The common name of the authority that the manager makes."""

POD_SETTLE_SECONDS: Final = 120.0
"""How long training pods may take to trust a new authority: kubelets renew what is mounted every minute or so."""

_SECRET: Final[str] = CertManagement.model_fields["webhook_secret_name"].default

ACCESS: Final = (
    Access(SECRETS, ("create",), is_own=True),
    Access(SECRETS, ("get", "update"), names=(_SECRET,), is_own=True),
    Access(VALIDATING, ("get", "patch"), names=(VALIDATOR,)),
    Access(MUTATING, ("get", "patch"), names=(DEFAULTER,)),
)

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
"""For an API server on the same machine. The same names everywhere: replicas share one certificate."""


def add_serving_certificate(
    operator: Operator, configuration: Configuration, namespace: str, gates: Collection[Gate]
) -> Certificates:
    """Let an operator see to its serving certificate, as the configuration says; `namespace` is the manager's own."""
    tls, management = decide_tls(configuration.tls), configuration.cert_management
    if not management.enable:
        return add_certificate_files(operator, CertificateFolder(folder_of(configuration)), tls)
    names = (*service_names(management.webhook_service_name, namespace), *_LOOPBACK)
    settings = CertificateSettings(
        ObjectKey(namespace, management.webhook_secret_name),
        [WebhookConfiguration(VALIDATING, VALIDATOR), WebhookConfiguration(MUTATING, DEFAULTER)],
        PkiPolicy(AUTHORITY, names),
        settle_seconds=POD_SETTLE_SECONDS if Gate.TRAINJOB_STATUS in gates else SETTLE_SECONDS,
    )
    return add_certificates(operator, settings, tls)


def folder_of(configuration: Configuration) -> Path:
    """Where the certificate is that somebody else provides."""
    given = configuration.webhook.cert_dir
    if given:
        return Path(given)
    # As Go finds it: Python's own way is to try where it can write, which is nowhere on a read-only file system.
    temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - nothing is written there
    return Path(temporary) / "k8s-webhook-server" / "serving-certs"
