"""Service accounts as pods have them: a token that the API server issued, and no certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from clusters.pki import write_secret

if TYPE_CHECKING:
    from pathlib import Path

    from clusters.api import Api

NAMESPACE = "kubeflow-system"
"""The namespace that config/default installs the manager into."""
NAME = "kubeflow-trainer-controller-manager"
"""The name of its account, and of its roles."""
USER = f"system:serviceaccount:{NAMESPACE}:{NAME}"
"""What the API server calls the manager."""

_TOKEN_SECONDS = 86_400


def write_account(api: Api, admin: Path, path: Path) -> None:
    """Write a kubeconfig with a token of the manager's service account."""
    write_token(api, admin, path, NAMESPACE, NAME)


def write_token(api: Api, admin: Path, path: Path, namespace: str, name: str) -> None:
    """Ask for a token of an account and write a kubeconfig with it; the rest is as in the administrator's."""
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    token = api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token", request)["status"]["token"]
    document = yaml.safe_load(admin.read_text())
    document["users"] = [{"name": each["name"], "user": {"token": token}} for each in document["users"]]
    write_secret(path, yaml.safe_dump(document, sort_keys=False).encode())
