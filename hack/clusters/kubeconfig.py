"""Kubeconfig files: one for each identity that talks to the API server of a cluster."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import yaml

from clusters.pki import Authority, write_secret

if TYPE_CHECKING:
    from clusters.folder import Folder

IDENTITIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("kubernetes-admin", ("system:masters",)),
    # What the manager is in a real cluster. It may do nothing until its roles are installed.
    "trainer": (
        "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager",
        ("system:serviceaccounts", "system:serviceaccounts:kubeflow-system", "system:authenticated"),
    ),
    # A person who may edit what is in namespaces, and nothing of the cluster itself.
    "user": ("user", ("system:authenticated",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "jobset-controller": ("system:serviceaccount:jobset-system:jobset-controller-manager", ("system:serviceaccounts",)),
    "kwok": ("system:serviceaccount:kube-system:kwok-controller", ("system:serviceaccounts",)),
}
"""Kubeconfig → user name and groups, as the certificate in it tells the API server."""

PEOPLE = ("admin", "trainer", "user")
"""The identities that developers and tests use; the others belong to components."""


def write_kubeconfigs(folder: Folder, server: str, authority: Authority) -> None:
    """Write one kubeconfig for each identity; the certificates are inside, so that a file can be copied."""
    for name, (user, groups) in IDENTITIES.items():
        pair = authority.issue(user, groups)
        cluster = {"server": server, "certificate-authority-data": _text(authority.certificate)}
        credentials = {"client-certificate-data": _text(pair.certificate), "client-key-data": _text(pair.key)}
        context = {"cluster": folder.name, "user": name, "namespace": "default"}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": folder.name, "cluster": cluster}],
            "users": [{"name": name, "user": credentials}],
            "contexts": [{"name": f"{name}@{folder.name}", "context": context}],
            "current-context": f"{name}@{folder.name}",
        }
        write_secret(folder.kubeconfig(name), yaml.safe_dump(document, sort_keys=False).encode())


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
